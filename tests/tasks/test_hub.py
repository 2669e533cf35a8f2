from __future__ import annotations

from pathlib import Path

import pytest

from headcount.base.errors import NotFoundError, UsageError
from headcount.tasks import open_task


def test_a_data_set_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # `datasets` reads a local folder through the same call as the hub
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "train.csv").write_text("body,other\nIt rains.,wet\nHe said no.,dry\n")
    (folder / "validation.csv").write_text("body,other\nIt rains.,wet\n")
    task = open_task("classification", hub=str(folder), columns="body", label="other")
    assert task.labels == ("dry", "wet")
    assert task.load("dev").texts[0] == ["It rains."]
    with pytest.raises(UsageError, match=r"no column 'bod'. Did you mean 'body'\?"):
        open_task("classification", hub=str(folder), columns="bod", label="other")
    with pytest.raises(NotFoundError, match="cannot be fetched"):
        open_task("classification", hub="nobody/nothing", columns="a", label="b")


def test_no_network_says_what_to_do() -> None:
    with pytest.raises(NotFoundError, match=r"No data for task 'sst2'.*pass --data DIR"):
        open_task("sst2").load()
