"""The papers' own numbers, as they print them: data with the table and cell they stand in.

printed = read_paper("weak-link").items["table-4"]
printed.where(ratio=0.5, task="mnli")        # [Number(83.22, "row 50, MNLI-M")]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from headcount.base.files import read_text

DATA = Path(__file__).parent / "data"
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

    def to_json(self) -> dict[str, object]:
        """A plain dict."""
        return {"value": self.value, "bound": self.bound, "cell": self.cell}


@dataclass(frozen=True, kw_only=True)
class PrintedTable:
    """A table or figure as the paper has it."""

    title: str
    unit: str
    numbers: Sequence[Number]
    setting: Mapping[str, object]

    def where(self, metric: str | None = None, **at: object) -> list[Number]:
        """The numbers of these places; shares are the same when they round to the same per cent."""
        return [
            number
            for number in self.numbers
            if (metric is None or number.metric == metric)
            and all(_same(number.at.get(name), value) for name, value in at.items())
        ]


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper: what it is, and its items."""

    name: str
    title: str
    year: int
    venue: str
    claims: str
    """What it claims, in our words, in one sentence."""
    items: Mapping[str, PrintedTable]


@cache
def read_paper(name: str) -> Paper:
    """The numbers of a paper."""
    data = read_data(f"numbers/{name}")
    items = {}
    for item, table in data["items"].items():
        unit = table["unit"]
        numbers = tuple(Number(**({"unit": unit} | number)) for number in table["numbers"])
        setting = table.get("setting", {})
        items[item] = PrintedTable(
            title=table["title"], unit=unit, setting=setting, numbers=numbers
        )
    about = {key: data[key] for key in ("title", "year", "venue", "claims")}
    return Paper(name=name, items=items, **about)


def read_data(name: str) -> dict[str, Any]:
    """A file of the room's data."""
    import yaml

    return yaml.safe_load(read_text(DATA / f"{name}.yaml", "data of the papers"))


def _same(left: object, right: object) -> bool:
    if isinstance(left, int | float) and isinstance(right, int | float):
        return abs(left - right) < 0.0051
    return left == right
