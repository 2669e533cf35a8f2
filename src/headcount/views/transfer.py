"""Two checkpoints compared, drawn: maps of heads, drift by layer and by importance, recall."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headcount.base.files import write_json
from headcount.heads import Scores
from headcount.views.curves import grid_of
from headcount.views.figures import (
    COLOURS,
    STYLE,
    colour_bar,
    need_matplotlib,
    new_figure,
    save_both,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headcount.changes.correlation import Correlation
    from headcount.changes.measure import Transfer


def save(found: Transfer, data: Mapping[str, Any], folder: Path, *, figures: bool = True) -> None:
    """transfer.json with `data`, and the figures, each whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in drawn(found, data).items() if figures else ():
        save_both(figure, folder / name)
    write_json(folder / "transfer.json", data)


def drawn(found: Transfer, data: Mapping[str, Any]) -> dict[str, Figure]:
    """The figures by the names of their files."""
    title = f"{Path(found.made['pretrained']).name} → {Path(found.made['finetuned']).name}"
    on = f"{title}\n{found.drift.n} inputs ({found.made['inputs']})"
    drift, change = found.drift.attention, found.change.total
    figures = {
        "attention_drift": head_map(drift, title=on, label="Jensen–Shannon divergence, bits"),
        "weight_change": head_map(change, title=title, label="mean absolute change of q, k, v"),
        "layers": layer_lines([vars(layer) for layer in found.drift.layers], title=on),
    }
    if found.importance:
        figures["drift_importance"] = scatter(drift, found.importance, found.correlations, title=on)
    if found.recall:
        names = f"{found.ranked[0].task} after {found.ranked[1].task}"
        figures["recall"] = recall_lines(data["recall"], title=names)
    return figures


def head_map(scores: Scores, *, title: str, label: str) -> Figure:
    """Layers × heads, one panel for each stack, all on one scale from 0."""
    matplotlib = need_matplotlib()
    from matplotlib.ticker import MaxNLocator

    by_layer = scores.by_layer()
    grids = {stack: grid_of(layers) for stack, layers in by_layer.items()}
    most = max(scores.values, default=0.0) or 1.0
    with matplotlib.rc_context(STYLE):
        wide = {stack: max(1.8, 0.22 * grid.shape[1]) for stack, grid in grids.items()}
        high = [wide[stack] * len(grid) / grid.shape[1] for stack, grid in grids.items()]
        # the title and the scale's label have room
        figure = new_figure(max(sum(wide.values()) + 1.6, 4.8), max(1.2, *high) + 1.3)
        figure.suptitle(title, x=0.01, ha="left")
        panels = np.atleast_1d(figure.subplots(1, len(grids)))
        image = None
        for axes, (stack, grid) in zip(panels, grids.items(), strict=True):
            image = axes.imshow(grid, cmap="viridis", vmin=0, vmax=most, interpolation="nearest")
            axes.set_title(stack)
            axes.set_xlabel("head")
            axes.tick_params(length=0)
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_locator(MaxNLocator(integer=True))
        panels[0].set_ylabel("layer")
        if image is not None:
            colour_bar(image, panels[-1], textwrap.fill(label, 18), size=8)
    return figure


def layer_lines(layers: Sequence[Mapping[str, Any]], *, title: str) -> Figure:
    """Attention drift of each layer, mean and max over heads, above hidden drift (Fig 4).

    Bars are 95 % intervals over inputs. `layers` are rows with the fields of `LayerDrift`.
    """
    matplotlib = need_matplotlib()
    from matplotlib.ticker import MaxNLocator

    with matplotlib.rc_context(STYLE):
        figure = new_figure(6.0, 5.0)
        figure.suptitle(title, x=0.01, ha="left")
        above, below = figure.subplots(2, 1, sharex=True)
        for place, stack in enumerate(dict.fromkeys(row["stack"] for row in layers)):
            rows = [row for row in layers if row["stack"] == stack]
            colour = COLOURS[place % len(COLOURS)]
            for axes, name, stroke in (
                (above, "mean", ".-"), (above, "max", ".--"), (below, "hidden", ".-"),
            ):  # fmt: skip
                values = np.array([row[name] for row in rows])
                if np.isnan(values).all():
                    continue
                wide = 1.96 * np.nan_to_num([row[f"{name}_stderr"] for row in rows])
                axes.errorbar(
                    range(len(rows)), values, wide, fmt=stroke, color=colour, lw=1.3,
                    label=stack if name == "hidden" else f"{stack}, {name} of heads",
                )  # fmt: skip
        above.set_ylabel("Jensen–Shannon divergence, bits")
        below.set_ylabel("hidden states, L2")
        below.set_xlabel("layer")
        below.xaxis.set_major_locator(MaxNLocator(integer=True))
        for axes in (above, below):
            axes.set_ylim(bottom=0)
            if axes.get_legend_handles_labels()[0]:
                axes.legend(frameon=False)
    return figure


def scatter(
    drift: Scores, importance: Mapping[str, Scores], lines: Mapping[str, Correlation], *, title: str
) -> Figure:
    """A point for each head, drift against importance, with the regression line (Fig 6)."""
    matplotlib = need_matplotlib()
    with matplotlib.rc_context(STYLE):
        figure = new_figure(4.2 * len(importance), 3.6)
        figure.suptitle(title, x=0.01, ha="left")
        panels = np.atleast_1d(figure.subplots(1, len(importance)))
        x = np.array(drift.values)
        stacks = [head.stack for head in drift.layout]
        for axes, (name, scores) in zip(panels, importance.items(), strict=True):
            y = np.array(scores.values)
            for place, stack in enumerate(dict.fromkeys(stacks)):
                own = np.array([other == stack for other in stacks])
                colour = COLOURS[place % len(COLOURS)]
                axes.plot(x[own], y[own], "o", ms=3.5, alpha=0.7, color=colour, label=stack)
            line = lines[name]
            if np.isfinite(line.slope):
                ends = np.array([x.min(), x.max()])
                axes.plot(ends, line.slope * ends + line.intercept, color="#444444", lw=1.2)
            axes.set_title(f"{name}: r = {line.pearson:.2f} [{line.low:.2f}, {line.high:.2f}]")
            axes.set_xlabel("attention drift, Jensen–Shannon divergence in bits")
            axes.set_ylabel("importance")
            if len(set(stacks)) > 1:
                axes.legend(frameon=False)
    return figure


def recall_lines(rows: Sequence[Mapping[str, Any]], *, title: str) -> Figure:
    """Recall of a task's heads against the pre-training task's relative score, with chance."""
    matplotlib = need_matplotlib()
    with matplotlib.rc_context(STYLE):
        figure = new_figure(5.0, 3.4)
        axes = figure.add_subplot()
        x = [100 * row["at"] for row in rows]
        axes.plot(x, [row["value"] for row in rows], ".-", color=COLOURS[0], label="recall")
        axes.plot(x, [row["chance"] for row in rows], "--", color="#777777", label="chance")
        axes.set_ylim(0, 1.03)
        axes.set_xlabel("score kept on the pre-training task, at least, %")
        axes.set_ylabel("share of the needed heads kept")
        axes.set_title(title)
        axes.legend(frameon=False)
    return figure
