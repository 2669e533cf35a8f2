"""Which rows a score is of, shown beside every score of the page.

A search scores the models it tries on the selection set, each on as many rows as its test needs,
and the selected one on the held-out set. Scores on two sets of rows are not comparable; differences
from all heads on the same rows are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from headcount.base.names import SETS, split_words
from headcount.tasks.parts import read_half
from headcount.views.page.reading import number, text
from headcount.views.page.walk import ReportItem


@dataclass(frozen=True)
class UsedRows:
    """The rows that a score is of."""

    name: str
    """The split that they are from."""
    split: str
    """The split or a half of it, in words."""
    set: str
    """selection set, held-out set, or nothing for rows that have no part in a search."""
    n: int | None

    @classmethod
    def of(cls, split: object, n: object, set: str = "") -> UsedRows:
        """The rows of a split with this name; a half of one knows its set."""
        split, count = text(split or ""), number(n)
        half = read_half(split)
        name = split if half is None else half[0]
        used = set or ("" if half is None else SETS[half[1]])
        return cls(name, text(split_words(split)), used, None if count is None else int(count))


NO_ROWS = UsedRows("", "", "", None)


def rows_text(used: Iterable[UsedRows]) -> str:
    """The rows of scores, in a few words.

    >>> small = UsedRows.of("dev:selection:0.5:0", 60)
    >>> rows_text([small])
    '60 rows of dev (selection set)'
    >>> rows_text([small, UsedRows.of("dev:selection:0.5:0", 1200)])
    '60 to 1,200 rows of dev (selection set)'
    >>> rows_text([UsedRows.of("dev", None), UsedRows.of("", None)])
    'rows of dev'
    """
    sizes: dict[str, set[int]] = {}
    for rows in used:
        where = f" of {rows.name}" * bool(rows.name) + f" ({rows.set})" * bool(rows.set)
        sizes.setdefault(where, set()).update([] if rows.n is None else [rows.n])
    parts = []
    for where, counts in sizes.items():
        ends = sorted({min(counts), max(counts)}) if counts else []
        if ends or where:
            count = " to ".join(f"{end:,}" for end in ends)
            parts.append(f"{count} rows{where}".strip())
    return ", ".join(parts[:3]) + (f" and {len(parts) - 3} more sets" if len(parts) > 3 else "")


def set_of(item: ReportItem, searches: Iterable[Path]) -> str:
    """The set that a search in one of these folders scored a record on; "" outside of any."""
    folders = set(searches)
    if item.study in folders:
        return SETS["selection"]
    selected = item.folder.name == "model" and item.folder.parent in folders
    return SETS["held-out"] if selected else ""
