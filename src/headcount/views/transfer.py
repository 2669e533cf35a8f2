"""Two checkpoints compared, drawn: maps of heads, drift by layer and by importance, recall."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headcount.base.files import write_json
from headcount.heads import Scores
from headcount.views.figures import (
    COLOURS,
    colour_bar,
    colour_of,
    head_grid,
    new_figure,
    save_both,
    styled,
    whole_ticks,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headcount.changes.correlation import Correlation
    from headcount.changes.drift import LayerDrift
    from headcount.changes.measure import Transfer
    from headcount.changes.recall import Recall
    from headcount.runs.kinds.transfer import LayerDriftValues


def save(
    transfer: Transfer, data: Mapping[str, object], folder: Path, *, figures: bool = True
) -> None:
    """transfer.json with `data`, and the figures, each whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in drawn(transfer).items() if figures else ():
        save_both(figure, folder / name)
    write_json(folder / "transfer.json", data)


def drawn(transfer: Transfer) -> dict[str, Figure]:
    """The figures by the names of their files."""
    models = [Path(transfer.provenance[side]).name for side in ("pretrained", "finetuned")]
    title = " → ".join(models)
    inputs = f"{title}\n{transfer.drift.n} inputs ({transfer.provenance['inputs']})"
    drift, change = transfer.drift.attention, transfer.change.total
    figures = {
        "attention_drift": head_map(drift, title=inputs, label="Jensen–Shannon divergence, bits"),
        "weight_change": head_map(change, title=title, label="mean absolute change of q, k, v"),
        "layers": layer_lines(transfer.drift.layers, title=inputs),
    }
    if transfer.importance:
        figures["drift_importance"] = scatter(
            drift, transfer.importance, transfer.correlations, title=inputs
        )
    if transfer.recall:
        tasks = f"{transfer.ranked[0].task} after {transfer.ranked[1].task}"
        figures["recall"] = recall_lines(transfer.recall, title=tasks)
    return figures


def head_map(scores: Scores, *, title: str, label: str) -> Figure:
    """Layers × heads, one panel for each stack, all on one scale from 0."""
    layout = scores.layout
    grids = {s.name: head_grid(layout, scores.values, s.name) for s in layout.stacks}
    largest = max(scores.values, default=0.0) or 1.0
    widths = [max(1.8, 0.22 * grid.shape[1]) for grid in grids.values()]
    heights = [
        width * len(grid) / grid.shape[1]
        for width, grid in zip(widths, grids.values(), strict=True)
    ]
    with styled():
        # the title and the scale's label have room
        figure = new_figure(max(sum(widths) + 1.6, 4.8), max(1.2, *heights) + 1.3)
        figure.suptitle(title, x=0.01, ha="left")
        panels = figure.subplots(1, len(grids), squeeze=False)[0]
        for axes, (stack, grid) in zip(panels, grids.items(), strict=True):
            image = axes.imshow(grid, cmap="viridis", vmin=0, vmax=largest, interpolation="nearest")
            axes.set_title(stack)
            axes.set_xlabel("head")
            whole_ticks(axes)
            if axes is panels[-1]:
                colour_bar(image, axes, textwrap.fill(label, 18), size=8)
        panels[0].set_ylabel("layer")
    return figure


def layer_lines(layers: Sequence[LayerDrift | LayerDriftValues], *, title: str) -> Figure:
    """Attention drift of each layer, mean and max over heads, above hidden drift (Fig 4).

    Bars are 95 % intervals over inputs.
    """
    with styled():
        figure = new_figure(6.0, 5.0)
        figure.suptitle(title, x=0.01, ha="left")
        above, below = figure.subplots(2, 1, sharex=True)
        lines = ((above, "mean", ".-"), (above, "max", ".--"), (below, "hidden", ".-"))
        for number, stack in enumerate(dict.fromkeys(row.stack for row in layers)):
            rows = [row for row in layers if row.stack == stack]
            for axes, name, stroke in lines:
                values = np.array([getattr(row, name) for row in rows], float)
                if np.isnan(values).all():
                    continue
                errors = 1.96 * np.nan_to_num(
                    np.array([getattr(row, f"{name}_stderr") for row in rows], float)
                )
                label = stack if name == "hidden" else f"{stack}, {name} of heads"
                line = {"fmt": stroke, "color": colour_of(number), "lw": 1.3, "label": label}
                axes.errorbar(range(len(rows)), values, errors, **line)
        above.set_ylabel("Jensen–Shannon divergence, bits")
        below.set_ylabel("hidden states, L2")
        below.set_xlabel("layer")
        below.xaxis.get_major_locator().set_params(integer=True)
        for axes in (above, below):
            axes.set_ylim(bottom=0)
            if axes.get_legend_handles_labels()[0]:
                axes.legend(frameon=False)
    return figure


def scatter(
    drift: Scores, importance: Mapping[str, Scores], lines: Mapping[str, Correlation], *, title: str
) -> Figure:
    """A point for each head, drift against importance, with the regression line (Fig 6)."""
    with styled():
        figure = new_figure(4.2 * len(importance), 3.6)
        figure.suptitle(title, x=0.01, ha="left")
        panels = figure.subplots(1, len(importance), squeeze=False)[0]
        x = np.array(drift.values)
        stacks = [head.stack for head in drift.layout]
        for axes, (name, scores) in zip(panels, importance.items(), strict=True):
            y = np.array(scores.values)
            for number, stack in enumerate(dict.fromkeys(stacks)):
                inside = np.array([other == stack for other in stacks])
                dots = {"ms": 3.5, "alpha": 0.7, "color": colour_of(number), "label": stack}
                axes.plot(x[inside], y[inside], "o", **dots)
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


def recall_lines(recall: Mapping[float, Recall], *, title: str) -> Figure:
    """Recall of a task's heads against the pre-training task's relative score, with chance."""
    with styled():
        figure = new_figure(5.0, 3.4)
        axes = figure.add_subplot()
        x, rows = [100 * share for share in recall], list(recall.values())
        axes.plot(x, [row.value for row in rows], ".-", color=COLOURS[0], label="recall")
        axes.plot(x, [row.chance for row in rows], "--", color="#777777", label="chance")
        axes.set_ylim(0, 1.03)
        axes.set_xlabel("score kept on the pre-training task, at least, %")
        axes.set_ylabel("share of the needed heads kept")
        axes.set_title(title)
        axes.legend(frameon=False)
    return figure
