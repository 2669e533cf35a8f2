"""The command that made a file: what it says itself, or the record beside it. None is made up."""

from __future__ import annotations

from typing import Any

from headcount.base.errors import HeadcountError
from headcount.base.files import read_json
from headcount.views.page.reading import text
from headcount.views.page.walk import ReportItem

LONGEST = 20_000
"""Characters of a command: one that is cut short cannot be run."""


def command_in(data: Any) -> str | None:
    """The whole line that made a result, where the result has it."""
    line = data.get("command") if hasattr(data, "get") else None
    return text(line, LONGEST) if line else None


def command_beside(item: ReportItem) -> str | None:
    """From NAME.record.json, or from record.json of the same folder."""
    for path in (item.path.with_suffix(".record.json"), item.folder / "record.json"):
        try:
            line = command_in(read_json(path, "record"))
        except HeadcountError:
            continue
        if line:
            return line
    return None
