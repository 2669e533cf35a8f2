"""Every table and figure of the four papers, and the groups of runs that each is drawn from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from headcount.base.errors import UsageError
from headcount.base.names import unknown
from headcount.papers.claims import groups_of_claim, read_claims
from headcount.papers.finished import PaperRuns
from headcount.papers.numbers import PAPERS, PrintedTable, read_paper
from headcount.papers.scales import SCALES, groups_of
from headcount.papers.sheets import DrawnItem

Draw = Callable[[PaperRuns, PrintedTable], DrawnItem]
ROOMS = {"redundancy": "figures_redundancy", "weak-link": "figures_weak_link",
         "autoattention": "figures_gates", "lay-off": "figures_layoff"}  # fmt: skip
NEAR, TUNED, BOTH = ("near",), ("near-tuned",), ("near", "near-tuned")
GATED = ("gates-full", "gates")
GROUPS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "redundancy": {
        "figure-1": NEAR, "figure-2": NEAR, "figure-3": NEAR, "figure-4": TUNED,
        "figure-5": BOTH, "figure-6": ("near", "near-random"),
        "figure-7": ("tuned", "zero-shot", "random"), "figure-8": ("chance",),
        "figure-9": ("alike-attention", "alike-hidden", "alike-both"),
        **{f"figure-{number}": BOTH for number in range(10, 18)},
        "figure-18": ("near-random",), "figure-19": ("near", "near-random", "near-tuned"),
        "figure-20": TUNED, "layers": ("near", "near-random"),
    },
    "weak-link": {
        "table-1": ("mt-full", "mt-random", "mt-left"), "table-2": ("mt-patterns",),
        "table-3": ("mt-components",), "table-4": ("tuned", "random"),
        "table-5": ("tuned", "layers"), "table-6": ("tuned", "layers"),
        "figure-1": ("mt-full", "mt-random", "tuned", "random"), "figure-2": ("moved",),
        "grid": ("grid-chosen", "grid-best"),
    },
    "autoattention": {
        "table-1": GATED, "table-2": GATED, "table-3": GATED, "figure-2": GATED,
        "figure-3": ("shown",), "figure-4": ("shown",), "figure-5": ("gates",),
        "figure-6": ("rates",), "figure-7": ("penalties",), "cost": ("shown", "cost"),
        "layers": ("gates",),
    },
    "lay-off": {
        "figure-1": ("curve",), "figure-2": ("words", "shared-words"),
        "figure-3": ("drift",), "figure-4": ("drift",), "figure-5": ("shared-curve",),
        "figure-6": ("drift",), "frozen": ("tuned", "frozen"),
    },
}  # fmt: skip
"""Paper -> item -> the groups that it needs; those that they start from come by themselves."""
ALSO: Mapping[tuple[str, str], tuple[str, ...]] = {
    **dict.fromkeys(
        [("redundancy", "figure-3"), ("redundancy", "figure-19")],
        ("near-printed", "near-short", "looks"),
    ),
    ("redundancy", "figure-5"): ("near-slow",), ("redundancy", "figure-6"): ("near-short",),
    ("redundancy", "figure-8"): ("chance-one",),
    ("redundancy", "figure-9"): ("alike-long",),
    ("weak-link", "figure-2"): ("moved-whole", "moved-slow"),
    ("redundancy", "figure-7"): ("zero-shot-full", "zero-shot-one"),
    ("autoattention", "table-1"): ("gates-printed",),
    ("weak-link", "table-1"): ("mt-full-de", "mt-random-de", "mt-left-de"),
    ("lay-off", "figure-1"): ("curve-again", "shared-curve", "unshared-words"),
    ("lay-off", "figure-2"): ("unshared-words",),
    ("lay-off", "figure-5"): ("shared-large-curve",),
    ("lay-off", "frozen"): ("frozen-full",),
}  # fmt: skip
"""Groups that an item takes along at scales that have them."""


@dataclass(frozen=True, kw_only=True)
class Item:
    """A table or figure of a paper."""

    paper: str
    name: str
    what: str
    groups: tuple[str, ...]
    claims: tuple[str, ...]

    @property
    def printed(self) -> PrintedTable:
        """What the paper has there."""
        return read_paper(self.paper).items[self.name]

    @property
    def scales(self) -> tuple[str, ...]:
        """The scales that have runs for it."""
        return tuple(s for s in SCALES if set(self.groups) <= set(groups_of(s)))

    @property
    def needs(self) -> tuple[str, ...]:
        """The groups of runs that it, and the claims that it bears on, are made from."""
        also = ALSO.get((self.paper, self.name), ())
        claimed = (group for code in self.claims for group in groups_of_claim(code))
        every = (*self.groups, *also, *claimed)
        return tuple(dict.fromkeys(every))

    def draw(self, found: PaperRuns) -> DrawnItem:
        """Its tables and figures from the runs that are done."""
        room = import_module(f"headcount.papers.{ROOMS[self.paper]}")
        return room.FIGURES[self.name](found, self.printed)

    def to_json(self) -> dict[str, Any]:
        """A plain dict."""
        return {
            "paper": self.paper, "item": self.name, "what": self.what,
            "claims": list(self.claims), "scales": list(self.scales), "groups": list(self.groups),
        }  # fmt: skip


@cache
def read_items() -> Mapping[tuple[str, str], Item]:
    """(paper, item) -> item, in the papers' order."""
    bearing: dict[str, list[str]] = {}
    for code, claim in read_claims().items():
        for place in claim.items:
            bearing.setdefault(place, []).append(code)
    return {
        (paper, name): Item(
            paper=paper, name=name, what=read_paper(paper).items[name].title, groups=groups,
            claims=tuple(bearing.get(f"{paper}/{name}", ())),
        )
        for paper in PAPERS
        for name, groups in GROUPS[paper].items()
    }  # fmt: skip


def get_item(paper: str, name: str) -> Item:
    """An item by its paper and name; `Table 4`, `fig-3` and `table4` are understood."""
    if paper not in PAPERS:
        raise unknown(f"There is no paper '{paper}'", paper, PAPERS, has="There are")
    known = GROUPS[paper]
    wanted = _spelled(name)
    if wanted not in known:
        raise unknown(f"'{paper}' has no item '{name}'", wanted, known, has="It has", most=30)
    return read_items()[paper, wanted]


def _spelled(name: str) -> str:
    """An item's name as it is listed.

    >>> _spelled("Table 4"), _spelled("fig3"), _spelled("figure-12"), _spelled("grid")
    ('table-4', 'figure-3', 'figure-12', 'grid')
    """
    import re

    found = re.fullmatch(r"(table|tab|figure|fig)[\s.\-]*(\d+)", name.strip().lower())
    if found is None:
        return name.strip().lower()
    return f"{'table' if found[1].startswith('tab') else 'figure'}-{found[2]}"


def require_scale(item: Item, scale: str) -> None:
    """Refuse a scale that has no runs for an item."""
    if scale not in item.scales:
        raise UsageError(
            f"{item.paper} {item.name} has no runs at the scale '{scale}', only at: "
            f"{', '.join(item.scales)}."
        )
