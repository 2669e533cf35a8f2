"""Importance as a table of layers and heads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from headcount.heads import Scores
from headcount.views.tables.columns import table

if TYPE_CHECKING:
    from headcount.sensitivity.gradients import ImportanceResult


def page(found: ImportanceResult) -> Table:
    """A row for each layer, a column for each head, and the layer's largest standard error."""
    errors = Scores(found.layout, found.stderr).by_layer()
    by_layer = found.by_layer()
    largest = max(found.values, default=0.0)
    digits = 3 if largest >= 0.05 else 5
    shown: dict[tuple[str, int], dict[int, str]] = {}
    for head, value in found.items():
        number = found.layout.original(head).index
        shown.setdefault((head.stack, head.layer), {})[number] = f"{value:.{digits}f}"
    widest = max((number + 1 for cells in shown.values() for number in cells), default=0)
    rows = []
    for stack, layers in by_layer.items():
        for layer in range(len(layers)):
            cells = shown.get((stack, layer), {})
            error = f"{max(errors[stack][layer], default=0.0):.{digits}f}"
            rows.append((f"{stack} {layer}", *(cells.get(i, "") for i in range(widest)), error))
    unit = {"none": "", "l1": ", ℓ1 per layer", "l2": ", ℓ2 per layer"}[found.normalize]
    title = f"E |∂L/∂ξ|{unit}, {found.n} examples, mean loss {found.loss:.4f}"
    return table(["layer", *map(str, range(widest)), "error ≤"], rows, title=title)
