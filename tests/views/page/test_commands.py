"""A file of arrays is made by the command of the record beside it."""

from __future__ import annotations

from pathlib import Path

from headcount.views.page.commands import command_beside, command_in
from headcount.views.page.walk import ReportItem
from page.made import record, write


def test_the_record_beside_says_it(tmp_path: Path) -> None:
    item = ReportItem(kind="matrix", path=tmp_path / "near.npz", data=None)
    assert command_beside(item) is None
    write(tmp_path / "record.json", record("redundancy", "of the folder", None))
    assert command_beside(item) == "headcount redundancy of the folder"
    write(tmp_path / "near.record.json", record("redundancy", "of the file", None))
    assert command_beside(item) == "headcount redundancy of the file"
    (tmp_path / "near.record.json").write_text("[1]")
    assert command_beside(item) == "headcount redundancy of the folder"


def test_a_long_command_is_whole() -> None:
    line = "headcount search m --columns " + " ".join(f"column{number}" for number in range(99))
    assert command_in({"command": line}) == line
    assert command_in({}) is None
    assert command_in(None) is None
