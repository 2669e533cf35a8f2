"""What `headcount roles` found: a grid of letters, and what they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group
from rich.text import Text

from headcount.behaviour.words import LETTERS
from headcount.views.tables.columns import Column, FittedTable

if TYPE_CHECKING:
    from headcount.behaviour.result import Roles

STYLES = {
    "previous": "bold blue",
    "next": "bold cyan",
    "same": "bold green",
    "first": "bold yellow",
    "separator": "bold magenta",
    "duplicate": "bold bright_red",
    "induction": "bold red",
}
NONE = "·"
"""A head without a role."""
ENOUGH = 20
"""Tokens for each unknown of a stand-in share: with as many it is at most 5 % too high."""


def page(found: Roles, out: Path | None = None) -> Group:
    """The grid, a line for each role, and a line for each other quantity."""
    head = f"{found.made.get('class', 'Model')} on {found.count} inputs ({found.inputs})"
    saved = [Text(f"Written to {out}.")] if out else []
    parts = [Text(head), Text(""), *grid(found), Text(""), legend(found), measures(found)]
    return Group(*parts, *_notes(found), *saved)


def grid(found: Roles) -> list[Text]:
    """A line for each layer, a letter for each head, where it was before any were removed."""
    letters: dict[tuple[str, int], dict[int, str | None]] = {
        (stack, layer): {} for stack, layer, _ in found.layout.layers()
    }
    for head, role in zip(found.layout, found.roles, strict=True):
        letters[head.stack, head.layer][found.layout.original(head).index] = role
    wide = max((len(f"{stack} {layer}") for stack, layer in letters), default=0)
    lines = []
    for (stack, layer), own in letters.items():
        line = Text(f"{stack} {layer}".ljust(wide + 1))
        for number in range(max(own, default=-1) + 1):
            role = own.get(number, "")
            shown = NONE if role is None else LETTERS.get(role, " ")
            line.append(f" {shown}", style=STYLES.get(role or "", "dim"))
        lines.append(line)
    return lines


def legend(found: Roles) -> FittedTable:
    """How many heads have each role, the chance of it, and who has most of it."""
    rows: list[Sequence[str]] = []
    for role, letter in LETTERS.items():
        each = found.quantities.get(role)
        if each is None or np.isnan(each.values).all():
            rows.append((letter, role, "-", "-", "-", "-"))
            continue
        at = int(np.nanargmax(each.values))
        best = f"{each.values[at]:.3f}"
        if not np.isnan(each.low[at]):
            best += f" [{each.low[at]:.3f}, {each.high[at]:.3f}]"
        head = str(found.layout.original(list(found.layout)[at]))
        chance = f"{found.chance[role]:.3f}" if role in found.chance else "-"
        rows.append((letter, role, str(found.roles.count(role)), chance, head, best))
    titles = ("", "role", "heads", "chance", "most", "share of its attention, 95 %")
    cells = list(zip(*rows, strict=True))
    words = ("", "role", "most")
    return FittedTable(
        [
            Column(title=title, cells=each, weight=9 - place, left=title in words)
            for place, (title, each) in enumerate(zip(titles, cells, strict=True))
        ]
    )


def measures(found: Roles) -> FittedTable:
    """A line for each quantity that is no role: its spread over heads, and its largest error."""
    rows: list[Sequence[str]] = []
    for name, each in found.quantities.items():
        if name in LETTERS:
            continue
        known = each.values[~np.isnan(each.values)]
        if not len(known):
            continue
        error = each.stderr[~np.isnan(each.stderr)]
        numbers = (np.median(known), known.min(), known.max())
        shown = (_number(number) for number in numbers)
        what = each.what
        rows.append((name, *shown, _number(error.max()) if len(error) else "-", each.unit, what))
    titles = ("quantity", "median", "smallest", "largest", "error ≤", "unit", "what it is")
    cells = list(zip(*rows, strict=True)) or [()] * len(titles)
    words = ("quantity", "unit", "what it is")
    weights = (9, 8, 7, 7, 5, 6, 4)
    return FittedTable(
        [
            Column(title=title, cells=each, weight=weight, left=title in words)
            for title, each, weight in zip(titles, cells, weights, strict=True)
        ]
    )


def _notes(found: Roles) -> list[Text]:
    """What a reader must not miss."""
    notes = []
    kinds = {str(kind) for kind in found.made.get("separators", {}).values() if kind}
    if kinds:
        names = " or ".join(sorted(kinds)).replace("special", "special tokens")
        notes.append(f"Separators are {names}.")
    tokens, unknowns = (found.made.get(name, 0) for name in ("tokens", "unknowns"))
    if tokens < ENOUGH * unknowns:
        notes.append(
            f"{tokens:,} tokens are few for stand-in shares of {unknowns:,} unknowns a layer: "
            "they are too high. More inputs help."
        )
    return [Text(note) for note in notes]


def _number(value: float) -> str:
    return f"{value:.4g}".replace("-", "\N{MINUS SIGN}", 1)
