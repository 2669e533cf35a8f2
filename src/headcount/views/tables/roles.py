"""The roles of heads: a grid of letters, and what they stand for."""

from __future__ import annotations

from collections.abc import Iterator
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
"""Tokens for each unknown of a replaceable share: with as many it is at most 5 % too high."""
LEFT = ("", "role", "most", "quantity", "unit", "what it is")
"""Titles of columns of words."""


def roles_table(roles: Roles, out: Path | None = None) -> Group:
    """The grid, a line for each role, and a line for each other quantity."""
    head = f"{roles.provenance.get('class', 'Model')} on {roles.count} inputs ({roles.inputs})"
    saved = [Text(f"Written to {out}.")] if out else []
    parts = [Text(head), Text(""), *grid(roles), Text(""), legend(roles), measures(roles)]
    return Group(*parts, *map(Text, _notes(roles)), *saved)


def grid(roles: Roles) -> list[Text]:
    """A line for each layer, a letter for each head, where it was before any were removed."""
    layers: dict[tuple[str, int], dict[int, str | None]] = {
        (stack, layer): {} for stack, layer, _ in roles.layout.layers()
    }
    for head, role in zip(roles.layout, roles.roles, strict=True):
        layers[head.stack, head.layer][roles.layout.original(head).index] = role
    width = max((len(f"{stack} {layer}") for stack, layer in layers), default=0)
    lines = []
    for (stack, layer), heads in layers.items():
        line = Text(f"{stack} {layer}".ljust(width + 1))
        for number in range(max(heads, default=-1) + 1):
            role = heads.get(number, "")
            letter = NONE if role is None else LETTERS.get(role, " ")
            line.append(f" {letter}", style=STYLES.get(role or "", "dim"))
        lines.append(line)
    return lines


def legend(roles: Roles) -> FittedTable:
    """How many heads have each role, its share by chance, and which head has most of it."""
    rows: list[tuple[str, ...]] = []
    for role, letter in LETTERS.items():
        quantity = roles.quantities.get(role)
        if quantity is None or np.isnan(quantity.values).all():
            rows.append((letter, role, "-", "-", "-", "-"))
            continue
        at = int(np.nanargmax(quantity.values))
        best = f"{quantity.values[at]:.3f}"
        if not np.isnan(quantity.low[at]):
            best += f" [{quantity.low[at]:.3f}, {quantity.high[at]:.3f}]"
        head = str(roles.layout.original(list(roles.layout)[at]))
        chance = f"{roles.chance[role]:.3f}" if role in roles.chance else "-"
        rows.append((letter, role, str(roles.roles.count(role)), chance, head, best))
    titles = ("", "role", "heads", "chance", "most", "share of its attention, 95 %")
    return _fitted(titles, (9, 8, 7, 6, 5, 4), rows)


def measures(roles: Roles) -> FittedTable:
    """A line for each quantity that is no role: its spread over heads, and its largest error."""
    rows: list[tuple[str, ...]] = []
    for name, quantity in roles.quantities.items():
        known = quantity.values[~np.isnan(quantity.values)]
        if name in LETTERS or not len(known):
            continue
        errors = quantity.stderr[~np.isnan(quantity.stderr)]
        spread = [_number(number) for number in (np.median(known), known.min(), known.max())]
        error = _number(errors.max()) if len(errors) else "-"
        rows.append((name, *spread, error, quantity.unit, quantity.what))
    titles = ("quantity", "median", "smallest", "largest", "error ≤", "unit", "what it is")
    return _fitted(titles, (9, 8, 7, 7, 5, 6, 4), rows)


def _fitted(
    titles: tuple[str, ...], weights: tuple[int, ...], rows: list[tuple[str, ...]]
) -> FittedTable:
    columns = list(zip(*rows, strict=True)) or [()] * len(titles)
    return FittedTable(
        [
            Column(title=title, cells=cells, weight=weight, left=title in LEFT)
            for title, cells, weight in zip(titles, columns, weights, strict=True)
        ]
    )


def _notes(roles: Roles) -> Iterator[str]:
    """What a reader must not miss."""
    kinds = {str(kind) for kind in roles.provenance.get("separators", {}).values() if kind}
    if kinds:
        names = " or ".join(sorted(kinds)).replace("special", "special tokens")
        yield f"Separators are {names}."
    tokens, unknowns = (roles.provenance.get(name, 0) for name in ("tokens", "unknowns"))
    if tokens < ENOUGH * unknowns:
        yield (
            f"{tokens:,} tokens are few for replaceable shares of {unknowns:,} unknowns a layer: "
            "they are too high. More inputs help."
        )


def _number(value: float) -> str:
    return f"{value:.4g}".replace("-", "\N{MINUS SIGN}", 1)
