"""Folders are walked to a bounded depth; what cannot be read is named and left out."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from fuzz.damage import become
from headcount.base.errors import NotFoundError, UsageError
from headcount.views.page.walk import DEPTH, ReportInput, ReportItem, walk
from page.made import record, write


def test_everything_is_found_once(files: Path) -> None:
    report = walk([files, files / "importance.json", files / "curve"])
    kinds = [item.kind for item in report.items]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {
        "prune": 19, "importance": 1, "study": 3, "search": 1, "roles": 1, "matrix": 3, "trace": 1,
        "bench": 1, "transfer": 1, "attention": 1, "maps": 1,
    }  # fmt: skip
    assert report.skipped == []


def test_a_run_knows_its_study(files: Path) -> None:
    runs = {item.folder.name: item.study for item in walk([files / "search"]).of("prune")}
    assert runs == {"model": None} | dict.fromkeys(("tried0.5", "tried0.75"), files / "search")
    assert walk([files / "importance.json"]).items[0].study is None


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("record.json", "{", "is no record"),
        (
            "record.json",
            '{"format": "headcount", "version": 7, "kind": "prune"}',
            "has version 7, and this",
        ),
        ("near.npz", "no archive", "is no redundancy file"),
        ("gates.npz", "no archive", "is no trace of gates"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, name: str, text: str, why: str) -> None:
    (tmp_path / name).write_text(text)
    report = walk([tmp_path])
    assert report.items == []
    ((file, said),) = report.skipped
    assert file == str(tmp_path / name)
    assert why in said


def test_what_is_not_ours_is_no_complaint(tmp_path: Path) -> None:
    for name in ("config.json", "other.json", "list.json"):
        (tmp_path / name).write_text(json.dumps([1] if name == "list.json" else {"a": 1}))
    (tmp_path / "tokenizer.json").write_text("{")
    report = walk([tmp_path])
    assert (report.items, report.skipped) == ([], [])


def test_depth_is_bounded_and_said(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*(["down"] * (DEPTH + 1)))
    deep.mkdir(parents=True)
    (deep / "record.json").write_text("{")
    ((folder, why),) = walk([tmp_path]).skipped
    assert "deep" in why
    assert folder == str(deep.parent)


@pytest.mark.parametrize(
    ("name", "what", "why"),
    [
        ("record.json", "pipe", "it is a pipe, not a file"),
        ("attention.npz", "/dev/zero", "it is a device, not a file"),
        ("mask.json", "loop", "it is a link that leads to itself"),
        ("mask.json", "nothing", "No such file"),
    ],
)
def test_what_is_no_file_is_named_and_not_waited_for(
    tmp_path: Path, name: str, what: str, why: str
) -> None:
    become(tmp_path / name, what)
    ((file, said),) = walk([tmp_path]).skipped
    assert file == str(tmp_path / name)
    assert why in said
    (tmp_path / "loop").symlink_to(tmp_path)  # a folder that is inside itself is not gone into
    assert len(walk([tmp_path]).skipped) == 1


def test_a_pipe_is_no_folder_of_runs(tmp_path: Path) -> None:
    become(tmp_path / "runs", "pipe")
    with pytest.raises(UsageError, match=r"runs' is a pipe: name folders and files"):
        walk([tmp_path / "runs"])


def test_a_folder_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", refuse)  # as root, all can be read
    assert walk([tmp_path]).skipped == [(str(tmp_path), "it cannot be read: Permission denied.")]


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="There is no file or folder"):
        walk([tmp_path / "none"])


def test_the_record_beside_an_array_has_its_command(tmp_path: Path) -> None:
    item = ReportItem(kind="matrix", path=tmp_path / "near.npz", data=None)
    assert item.command is None
    write(tmp_path / "record.json", record("redundancy", "of the folder", None))
    assert item.command == "headcount redundancy of the folder"
    write(tmp_path / "near.record.json", record("redundancy", "of the file", None))
    assert item.command == "headcount redundancy of the file"
    (tmp_path / "near.record.json").write_text("[1]")
    assert item.command == "headcount redundancy of the folder"


def test_a_long_command_is_whole() -> None:
    line = "headcount search m --columns " + " ".join(f"column{number}" for number in range(99))
    long = ReportItem(kind="search", path=Path("search.json"), data={"command": line})
    assert long.command == line
    assert ReportItem(kind="search", path=Path("search.json"), data={}).command is None


def test_a_damaged_file_is_named_and_left_out() -> None:
    report = ReportInput()
    item = ReportItem(kind="prune", path=Path("a.json"), data={})
    assert report.each([item], lambda item: item.data["mask"]) == []
    assert report.skipped == [("a.json", "left out: a value is missing or wrong: 'mask'.")]
