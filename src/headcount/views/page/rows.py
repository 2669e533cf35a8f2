"""Which rows a score is of, said wherever the page shows one.

A search scores its cuts on the selection set, each on as many rows as its judgement needs, and the
answer on the held-out set. Scores of two sets of rows are not comparable; differences from all
heads on the same rows are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from headcount.base.names import SETS
from headcount.tasks.parts import read_half
from headcount.views.page.reading import number
from headcount.views.page.walk import ReportItem


def set_of(item: ReportItem, split: str, searches: Iterable[Path]) -> str:
    """selection set, held-out set, or nothing for rows that have no part in a search."""
    folders = set(searches)
    if item.study in folders:
        return SETS["chosen"]
    if item.folder.name == "model" and item.folder.parent in folders:
        return SETS["scored"]
    half = read_half(split)
    return "" if half is None else SETS[half[1]]


def rows_said(scored: Iterable[Mapping[str, Any]]) -> str:
    """The rows of scores, in a few words.

    >>> small = {"split": "dev:chosen:0.5:0", "n": 60, "set": "selection set"}
    >>> rows_said([small])
    '60 rows of dev (selection set)'
    >>> rows_said([small, small | {"n": 1200}])
    '60 to 1,200 rows of dev (selection set)'
    >>> rows_said([{"split": "dev", "n": None}, {"split": "", "n": None}])
    'rows of dev'
    """
    sizes: dict[str, set[int]] = {}
    for one in scored:
        split = str(one.get("split") or "")
        half = read_half(split)
        name = split if half is None else half[0]
        use = one.get("set") or ("" if half is None else SETS[half[1]])
        count = number(one.get("n"))
        own = sizes.setdefault(f" of {name}" * bool(name) + f" ({use})" * bool(use), set())
        own |= set() if count is None else {int(count)}
    said = [_sizes(own) + "rows" + where for where, own in sizes.items() if own or where]
    return ", ".join(said[:3]) + (f" and {len(said) - 3} more sets" if len(said) > 3 else "")


def _sizes(sizes: set[int]) -> str:
    ends = sorted({min(sizes), max(sizes)}) if sizes else []
    return "".join([" to ".join(f"{count:,}" for count in ends), " " * bool(ends)])


def several(scored: Iterable[Mapping[str, Any]]) -> bool:
    """Whether scores are of more than one set of rows."""
    return len({(one.get("split"), one.get("n")) for one in scored}) > 1
