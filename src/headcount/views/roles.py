"""What every head does, drawn: a heat map of layers and heads for each quantity."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headcount.views.figures import colour_bar, head_grid, new_figure, no_frame, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headcount.behaviour.result import Roles

COLUMNS = 4


def heat_maps(roles: Roles) -> Figure:
    """A map for each stack and quantity that was measured there."""
    panels = [
        (stack.name, name, head_grid(roles.layout, quantity.values, stack.name))
        for stack in roles.layout.stacks
        for name, quantity in roles.quantities.items()
    ]
    panels = [panel for panel in panels if not np.isnan(panel[2]).all()]
    rows = -(-len(panels) // COLUMNS)
    with styled():
        figure = new_figure(3.1 * COLUMNS + 0.3, 2.7 * rows + 0.5)
        model = Path(str(roles.provenance.get("model", "model"))).name
        title = f"What heads do: {model} on {roles.count} inputs ({roles.inputs})"
        figure.suptitle(title, x=0.01, ha="left")
        for number, (stack, name, grid) in enumerate(panels, 1):
            axes = figure.add_subplot(rows, COLUMNS, number)
            unit, title = roles.quantities[name].unit, name.replace("_", " ")
            title = title if unit == "share" else f"{title}, {unit}"
            axes.set_title(f"{stack} · {title}" if len(roles.layout.stacks) > 1 else title)
            low = 0 if np.nanmin(grid) >= 0 else None
            image = axes.imshow(
                grid, cmap="viridis", vmin=low, interpolation="nearest", aspect="auto"
            )
            step = -(-max(grid.shape) // 12)
            axes.set_xticks(range(0, grid.shape[1], step))
            axes.set_yticks(range(0, grid.shape[0], step))
            axes.set_xlabel("head")
            axes.set_ylabel("layer")
            no_frame(axes)
            colour_bar(image, axes)
    return figure
