"""The command that made a file of arrays: what the record beside it says."""

from __future__ import annotations

from headcount.errors import HeadcountError
from headcount.files import read_json
from headcount.views.page.reading import text
from headcount.views.page.walk import Item


def command_beside(item: Item) -> str | None:
    """From NAME.record.json, or from record.json of the same folder."""
    for path in (item.path.with_suffix(".record.json"), item.folder / "record.json"):
        try:
            said = read_json(path, "record").get("command")
        except (HeadcountError, AttributeError):
            continue
        if said:
            return text(said)
    return None
