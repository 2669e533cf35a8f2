"""What may be written where is asked before any work."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headcount.base.errors import HeadcountError, UsageError
from headcount.base.files import whole, whole_folder
from headcount.base.outputs import require_apart, require_new, require_place, require_replaceable


def test_a_link_is_followed_and_stays(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert require_new(tmp_path / "link") == tmp_path / "link"
    with whole_folder(tmp_path / "link") as made:
        (made / "a").write_text("1")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "a").read_text() == "1"
    with whole_folder(tmp_path / "link", replace=True) as made:
        (made / "a").write_text("2")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "a").read_text() == "2"
    (tmp_path / "file").symlink_to("real/b")
    with whole(tmp_path / "file") as partial:
        partial.write_text("3")
    assert (tmp_path / "file").is_symlink()
    assert (tmp_path / "real" / "b").read_text() == "3"
    assert sorted(os.listdir(tmp_path)) == ["file", "link", "real"]


@pytest.mark.parametrize("below", [".", "a", "a/b"])
def test_a_link_that_leads_nowhere_is_refused(tmp_path: Path, below: str):
    (tmp_path / "link").symlink_to("not-there")
    with pytest.raises(UsageError, match="is a link to not-there, which is not there"):
        require_place(tmp_path / "link" / below)
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(HeadcountError, match="loop"):
        require_place(tmp_path / "loop" / below)


@pytest.mark.parametrize("name", ["a" * 230, "é" * 120, "a" * 5000, "a\0b", "b/" * 3000])
def test_a_name_that_temporary_files_cannot_have_is_refused(tmp_path: Path, name: str):
    with pytest.raises(UsageError, match="215 letters at most"):
        require_place(tmp_path / name)


@pytest.mark.parametrize("name", ["a" * 215, f"{'é' * 105}.json"])
def test_the_longest_name_is_written(tmp_path: Path, name: str):
    with whole(require_place(tmp_path / name)) as partial:
        partial.write_text("1")
    (tmp_path / name).unlink()
    for _ in range(2):
        with whole_folder(require_place(tmp_path / name), replace=True) as made:
            (made / "a").write_text("1")
    with whole(tmp_path / f".{name}.unfinished") as partial:
        partial.write_text("1")


def test_what_is_read_is_not_written_over(tmp_path: Path):
    model = tmp_path / "folder" / "model"
    model.mkdir(parents=True)
    (tmp_path / "link").symlink_to(model)
    for out in (model, tmp_path / "link", model / "..", tmp_path / "folder"):
        with pytest.raises(UsageError, match=r"is what is read|is read and lies in"):
            require_apart(out, [model], overwrite=True)
    with pytest.raises(UsageError, match="is what is read"):
        require_apart(tmp_path / "link", [model], overwrite=False)
    require_apart(tmp_path / "folder", [model], overwrite=False)
    require_apart(tmp_path / "fold", [model, "on-the-hub"], overwrite=True)
    require_apart(model / "small", [model], overwrite=True)


def test_only_what_headcount_wrote_is_replaced(tmp_path: Path):
    names = ["config.json", "model.safetensors", "record.json", "mask.json", "README.md",
             "tokenizer.json", "gates.npz", "model-1.safetensors", "vocab.txt"]  # fmt: skip
    for name in names:
        (tmp_path / name).write_text("")
    (tmp_path / ".eval_results").mkdir()
    require_replaceable(tmp_path)
    for name in ("notes.txt", "thesis.tex", ".git"):
        (tmp_path / name).write_text("")
        with pytest.raises(UsageError, match=f"{name} is nothing that headcount wrote"):
            require_replaceable(tmp_path)
        (tmp_path / name).unlink()
    (tmp_path / "runs").mkdir()
    with pytest.raises(UsageError, match="runs is nothing that headcount wrote"):
        require_replaceable(tmp_path)
