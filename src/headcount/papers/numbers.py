"""The papers' own numbers, as they print them: data with the table and cell they stand in.

printed = read_printed("weak-link", "table-4")
printed.where(ratio=0.5, task="mnli")        # [Number(83.22, "row 50, MNLI-M")]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from headcount.base.files import read_text

FOLDER = Path(__file__).parent / "data" / "numbers"
PAPERS = ("redundancy", "weak-link", "autoattention", "lay-off")


@dataclass(frozen=True, kw_only=True)
class Number:
    """One number that a paper prints."""

    at: Mapping[str, Any]
    """What it is of, in headcount's words: task, ratio, method …"""
    metric: str
    value: float
    cell: str
    """Where it stands: the row and column, or the section that states it."""
    unit: str
    bound: str = ""
    """<, ≤, > or ≥ where the paper gives a limit only."""

    def __str__(self) -> str:
        return f"{self.bound}{self.value:g}"


@dataclass(frozen=True, kw_only=True)
class PrintedTable:
    """A table or figure as the paper has it."""

    title: str
    unit: str
    numbers: Sequence[Number]
    setting: Mapping[str, Any]

    def where(self, metric: str | None = None, **at: Any) -> list[Number]:
        """The numbers of these places; shares are the same when they round to the same per cent."""
        return [
            each
            for each in self.numbers
            if (metric is None or each.metric == metric)
            and all(_same(each.at.get(name), value) for name, value in at.items())
        ]


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper: what it is, and its items."""

    name: str
    title: str
    year: int
    venue: str
    items: Mapping[str, PrintedTable]


@cache
def read_paper(name: str) -> Paper:
    """The numbers of a paper."""
    import yaml

    data = yaml.safe_load(read_text(FOLDER / f"{name}.yaml", "numbers"))
    items = {
        item: PrintedTable(
            title=each["title"], unit=each["unit"], setting=each.get("setting", {}),
            numbers=tuple(Number(**({"unit": each["unit"]} | one)) for one in each["numbers"]),
        )
        for item, each in data["items"].items()
    }  # fmt: skip
    about = {key: data[key] for key in ("title", "year", "venue")}
    return Paper(name=name, items=items, **about)


def read_printed(paper: str, item: str) -> PrintedTable:
    """A table or figure of a paper."""
    return read_paper(paper).items[item]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        return abs(one - other) < 0.0051
    return one == other
