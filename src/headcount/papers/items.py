"""Every table and figure of the four papers, and the groups of runs that each is drawn from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from headcount.base.errors import UsageError
from headcount.base.names import unknown
from headcount.papers.claims import groups_of_claim, read_claims
from headcount.papers.finished import PaperRuns
from headcount.papers.numbers import PAPERS, PrintedTable, read_data, read_paper
from headcount.papers.scales import SCALES, groups_of
from headcount.papers.sheets import DrawnItem

ROOMS = {
    "redundancy": "figures_redundancy",
    "weak-link": "figures_weak_link",
    "autoattention": "figures_gates",
    "lay-off": "figures_layoff",
}


@dataclass(frozen=True, kw_only=True)
class Item:
    """A table or figure of a paper."""

    paper: str
    name: str
    groups: tuple[str, ...]
    """The groups of runs that it is drawn from."""
    also: tuple[str, ...]
    """Groups that it takes along at scales that have them."""
    claims: tuple[str, ...]

    @property
    def printed(self) -> PrintedTable:
        """What the paper has there."""
        return read_paper(self.paper).items[self.name]

    @property
    def what(self) -> str:
        """What it shows."""
        return self.printed.title

    @property
    def scales(self) -> tuple[str, ...]:
        """The scales that have runs for it."""
        return tuple(scale for scale in SCALES if set(self.groups) <= set(groups_of(scale)))

    @property
    def needs(self) -> tuple[str, ...]:
        """The groups of runs that it, and the claims that it bears on, are made from."""
        claimed = (group for code in self.claims for group in groups_of_claim(code))
        return tuple(dict.fromkeys((*self.groups, *self.also, *claimed)))

    def draw(self, finished: PaperRuns) -> DrawnItem:
        """Its tables and figures from the runs that are done."""
        room = import_module(f"headcount.papers.{ROOMS[self.paper]}")
        return room.FIGURES[self.name](finished, self.printed)

    def to_json(self) -> dict[str, object]:
        """A plain dict."""
        lists = {name: list(getattr(self, name)) for name in ("claims", "scales", "groups")}
        return {"paper": self.paper, "item": self.name, "what": self.what, **lists}


@cache
def read_items() -> Mapping[tuple[str, str], Item]:
    """(paper, item) -> item, in the papers' order."""
    data, claims = read_data("items"), read_claims()
    return {
        (paper, name): Item(
            paper=paper,
            name=name,
            groups=tuple(runs["groups"]),
            also=tuple(runs.get("also", ())),
            claims=tuple(code for code in claims if f"{paper}/{name}" in claims[code].items),
        )
        for paper in PAPERS
        for name, runs in data[paper].items()
    }


def get_item(paper: str, name: str) -> Item:
    """An item by its paper and name; `Table 4`, `fig-3` and `table4` are understood."""
    if paper not in PAPERS:
        raise unknown(f"There is no paper '{paper}'", paper, PAPERS, has="There are")
    known = [item for of, item in read_items() if of == paper]
    wanted = _spelled(name)
    if wanted not in known:
        raise unknown(f"'{paper}' has no item '{name}'", wanted, known, has="It has", most=30)
    return read_items()[paper, wanted]


def _spelled(name: str) -> str:
    """An item's name as it is listed.

    >>> _spelled("Table 4"), _spelled("fig3"), _spelled("figure-12"), _spelled("grid")
    ('table-4', 'figure-3', 'figure-12', 'grid')
    """
    match = re.fullmatch(r"(table|tab|figure|fig)[\s.\-]*(\d+)", name.strip().lower())
    if match is None:
        return name.strip().lower()
    return f"{'table' if match[1].startswith('tab') else 'figure'}-{match[2]}"


def require_scale(item: Item, scale: str) -> None:
    """Refuse a scale that has no runs for an item."""
    if scale not in item.scales:
        raise UsageError(
            f"{item.paper} {item.name} has no runs at the scale '{scale}', only at: "
            f"{', '.join(item.scales)}."
        )
