from __future__ import annotations

from pathlib import Path

import pytest

from headcount.base.errors import NotFoundError, UsageError
from headcount.tasks import open_task


def test_lines_of_a_text_file(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("one\n\n two \n")
    (tmp_path / "valid.txt").write_text("three")
    task = open_task("masked-lm", data=tmp_path)
    assert task.metrics == ("recall@1", "perplexity")
    assert task.load("train").texts[0] == ["one", " two "]
    assert task.load().texts[0] == ["three"]
    causal = open_task("causal-lm", data=tmp_path / "train.txt")
    assert causal.metrics == ("perplexity",)
    assert causal.packed


def test_bad_text_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs a text file"):
        open_task("masked-lm")
    (tmp_path / "blank.txt").write_text("\n \n")
    with pytest.raises(NotFoundError, match="has no text"):
        open_task("masked-lm", data=tmp_path / "blank.txt").load()
    with pytest.raises(NotFoundError, match="no folder"):
        open_task("masked-lm", data=tmp_path / "gone.txt")
