"""Files by what is in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import headcount as hc
from headcount.base.digest import plain_digest
from headcount.base.errors import UsageError
from headcount.runs.contents import FILE, by_content, content_of, named_files
from headcount.runs.run import Run


def test_a_folder_is_known_by_its_files_and_not_by_what_a_run_left_beside_them(tmp_path: Path):
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    (model / "model.safetensors").write_bytes(b"weights")
    then = content_of(str(model))
    for name in ("record.json", "README.md", ".lock", "curve.png"):
        (model / name).write_text("something")
    assert content_of(str(model)) == then
    (model / "model.safetensors").write_bytes(b"heights")
    assert content_of(str(model)) != then
    assert content_of(str(tmp_path / "nowhere")) is None
    assert content_of("") is None


@pytest.mark.parametrize("name", ["/", "/proc/self", "/proc/kmsg", "/sys"])
def test_what_belongs_to_the_system_is_no_data(tmp_path: Path, name: str):
    with pytest.raises(UsageError, match="is part of the system"):
        content_of(name)
    (tmp_path / "link").symlink_to(name)
    with pytest.raises(UsageError, match="is part of the system"):
        content_of(str(tmp_path / "link"))
    if not Path(name).is_dir():
        with pytest.raises(UsageError, match="is part of the system"):
            content_of(str(tmp_path))


def test_data_in_folders_inside_counts_and_folders_inside_a_model_do_not(tmp_path: Path):
    rows = tmp_path / "glue" / "CoLA"
    rows.mkdir(parents=True)
    (rows / "train.tsv").write_text("one row")
    asked: dict[str, Any] = {"task": "cola", "source": {"data": str(tmp_path / "glue")}}
    then = Run.read({"kind": "evaluate", "model": "pocket", **asked}).key
    (rows / "train.tsv").write_text("another row")
    assert Run.read({"kind": "evaluate", "model": "pocket", **asked}).key != then

    model = content_of(str(tmp_path / "glue"))
    (tmp_path / "glue" / "config.json").write_text("{}")
    as_model = content_of(str(tmp_path / "glue"))
    (rows / "train.tsv").write_text("one row")
    assert content_of(str(tmp_path / "glue")) == as_model != model


def test_paths_are_found_where_options_have_them(tmp_path: Path):
    @dataclass(frozen=True)
    class Inner:
        path: Path | None = None
        word: str = "dev"

    @dataclass(frozen=True)
    class Outer:
        inner: Inner
        marked: str = field(default="a.json", metadata=FILE)
        typed: Any = field(default=("b.npz", 3), metadata={"typed": tuple[Path, ...]})
        plain: str = "c.json"

    assert list(named_files(Outer(Inner(Path("t.txt"))))) == ["t.txt", "a.json", "b.npz"]
    asked = hc.Prune(
        method=hc.Cluster(redundancy=("near.npz",)), calibration=hc.Calibration(rows="in")
    )
    assert list(named_files(asked)) == ["near.npz", "in"]


def test_only_what_is_named_as_a_file_is_read(tmp_path: Path):
    file = tmp_path / "x"
    file.write_text("1")
    asked = {"data": [str(file)], "task": str(file)}
    assert by_content(asked, set()) == asked
    assert by_content(asked, {str(file)})["data"] == [content_of(str(file))]
    assert (
        plain_digest({"a": 1, "b": 2}) == plain_digest({"b": 2, "a": 1}) != plain_digest({"a": 1})
    )
