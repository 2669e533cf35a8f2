"""What every head does, drawn: a heat map of layers and heads for each quantity."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headcount.behaviour.result import Roles
from headcount.views.figures import STYLE, colour_bar, need_matplotlib, new_figure
from headcount.views.redundancy import MAP

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = 4


def heat_maps(found: Roles) -> Figure:
    """A map for each stack and quantity that was measured there."""
    panels = [
        (stack.name, name, _table(found, stack.name, name))
        for stack in found.layout.stacks
        for name in found.quantities
    ]
    panels = [panel for panel in panels if not np.isnan(panel[2]).all()]
    rows = -(-len(panels) // COLUMNS)
    several = len(found.layout.stacks) > 1
    with need_matplotlib().rc_context(STYLE):
        figure = new_figure(3.1 * COLUMNS + 0.3, 2.7 * rows + 0.5)
        model = Path(str(found.made.get("model", "model"))).name
        title = f"What heads do: {model} on {found.count} inputs ({found.inputs})"
        figure.suptitle(title, x=0.01, ha="left")
        for place, (stack, name, table) in enumerate(panels):
            axes = figure.add_subplot(rows, COLUMNS, place + 1)
            unit = found.quantities[name].unit
            shown = f"{name.replace('_', ' ')}, {unit}" if unit != "share" else name
            axes.set_title(f"{stack} · {shown}" if several else shown.replace("_", " "))
            _draw(axes, table, name)
    return figure


def _table(found: Roles, stack: str, name: str) -> np.ndarray:
    """(layer, head) by the numbers heads had before any were removed; NaN where there is none."""
    own = [
        (found.layout.original(head), value)
        for head, value in zip(found.layout, found.quantities[name].values, strict=True)
        if head.stack == stack
    ]
    widest = max((head.index for head, _ in own), default=0) + 1
    table = np.full((len(found.layout[stack].heads), widest), np.nan)
    for head, value in own:
        table[head.layer, head.index] = value
    return table


def _draw(axes: Any, table: np.ndarray, name: str) -> None:
    low = 0 if np.nanmin(table) >= 0 else None
    image = axes.imshow(table, cmap=MAP, vmin=low, interpolation="nearest", aspect="auto")
    step = -(-max(table.shape) // 12)
    axes.set_xticks(range(0, table.shape[1], step))
    axes.set_yticks(range(0, table.shape[0], step))
    axes.set_xlabel("head")
    axes.set_ylabel("layer")
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    colour_bar(image, axes)
