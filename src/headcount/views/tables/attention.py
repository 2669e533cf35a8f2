"""Where each head looks, a line for each."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from headcount.views.tables.columns import table


def page(data: dict[str, Any]) -> RenderableType:
    """Entropy, distance and what is looked at most; of two models both, and how they differ."""
    two = data["pruned"] is not None
    many = any(row["run"] for row in data["heads"])
    rows = []
    for row in data["heads"]:
        name = f"{row['stack']}.{row['layer']}.{row['head']}"
        cells = [f"{name}, run {row['run']}" if many else name, *_cells(row)]
        if two:
            after = row["after"]
            cells += ["gone", "", "", ""] if after is None else _cells(after)
            cells += ["" if after is None else f"{row['divergence']:.3f}"]
        rows.append(cells)
    own = ["entropy, bits", "distance", "looks most at", "share"]
    columns = ["head", *own]
    if two:
        columns += [f"after: {own[0]}", *own[1:], "JS, bits"]
    told = [f"{stack}: {' '.join(each['keys'])}" for stack, each in data["tokens"].items()]
    return Group(table(columns, rows), Text("\n".join(told)))


def _cells(said: dict[str, Any]) -> list[str]:
    most = said["most_attended"]
    if most is None:
        return ["", "", "nothing", ""]
    distance = "" if said["distance"] is None else f"{said['distance']:.2f}"
    place = f"{most['token'] or ''} ({most['position']})".strip()
    return [f"{said['entropy']:.2f}", distance, place, f"{most['share']:.2f}"]
