"""Figures of learned gates: values and gates as layers × heads, and their way there.

As in AutoAttention, Fig. 5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headcount.base.errors import UsageError
from headcount.views.figures import (
    COLOURS,
    GRID,
    colour_bar,
    colour_of,
    head_grid,
    new_figure,
    save_both,
    styled,
    whole_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from headcount.learned.trace import Trace

CLOSED, OPEN = "#26303c", "#f2c14e"


def save_figures(trace: Trace, folder: Path) -> None:
    """Both figures beside the trace, each whole or not at all."""
    from headcount.training.checkpoints import sweep

    sweep(folder)  # a kill while they were drawn
    save_both(maps_figure(trace), folder / "gates")
    save_both(path_figure(trace), folder / "gates-path")


def maps_figure(trace: Trace) -> Figure:
    """Values and gates of every head at the start, in the middle and at the end (Fig 5).

    For each stack two rows: what is trained, blue below zero; and which gates are open.
    """
    if not trace.steps:
        raise UsageError("This trace of gates has no step to draw.")
    columns = _three(trace)
    stacks = trace.layout.stacks
    reach = max(float(np.abs(trace.values[column]).max()) for column in columns) or 1.0
    height = sum(min(1.9 * len(stack.heads) / max([*stack.heads, 1]), 4) + 0.6 for stack in stacks)
    with styled():
        figure = new_figure(2.3 * len(columns) + 1.2, 2 * height + 0.4)
        figure.suptitle(_title(trace), x=0.01, ha="left")
        grid = figure.subplots(2 * len(stacks), len(columns), squeeze=False)
        for row, stack in enumerate(stacks):
            _draw_stack(grid[2 * row : 2 * row + 2], trace, columns, stack.name, reach)
    return figure


def _draw_stack(
    grid: np.ndarray, trace: Trace, columns: Sequence[int], stack: str, reach: float
) -> None:
    """A row of values with their scale, and below it a row of gates with what its colours mean."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    prefix = f"{stack}, " if len(trace.layout.stacks) > 1 else ""
    for column, above, below in zip(columns, *grid, strict=True):
        values = head_grid(trace.layout, trace.values[column], stack)
        image = above.imshow(values, cmap="RdBu_r", vmin=-reach, vmax=reach)
        above.set_title(f"{prefix}step {trace.steps[column]}", fontsize=8)
        states = head_grid(trace.layout, trace.states[column].astype(float), stack)
        below.imshow(states, cmap=ListedColormap([CLOSED, OPEN]), vmin=0, vmax=1)
        below.set_title(f"{int(np.nansum(states))} open", fontsize=8)
        for axes in (above, below):
            whole_ticks(axes, 6)
            if column == columns[0]:
                axes.set_ylabel("layer", fontsize=7)
        below.set_xlabel("head", fontsize=7)
        if column == columns[-1]:
            colour_bar(image, above, "trained value")
            names = [Patch(color=OPEN, label="open"), Patch(color=CLOSED, label="closed")]
            beside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
            below.legend(handles=names, **beside, frameon=False, fontsize=7)


def path_figure(trace: Trace) -> Figure:
    """Sparsity with the score, gates closed and reopened, and heads left per layer, over steps.

    Where no scores were measured over the run, the training loss is drawn with the sparsity.
    """
    scores, losses = ([p for p in trace.scores if name in p] for name in ("score", "loss"))
    with styled():
        figure = new_figure(6.4, 8.4 if scores and losses else 6.6)
        top, *rest = figure.subplots(4 if scores and losses else 3, 1, sharex=True)
        heads, steps = len(trace.layout), np.arange(1, len(trace.opened) + 1)
        top.plot(steps, 1 - np.array(trace.opened) / heads, color=COLOURS[0], lw=1.4)
        top.set_ylabel("share of gates closed", color=COLOURS[0])
        top.set_title(_title(trace))
        if scores:
            right = top.twinx()
            label = f"{trace.about.get('metric', 'score')}, n = {scores[0]['n']}"
            _line(right, scores, "score", label, COLOURS[1], marker=".")
            _widen(right, [point["score"] for point in scores])
        if losses:
            _line(rest[0] if scores else top.twinx(), losses, "loss", "training loss", COLOURS[6])
        middle, bottom = rest[-2:]
        for name, counts, colour in (
            ("closed", trace.closings, COLOURS[1]),
            ("reopened", trace.reopenings, COLOURS[2]),
        ):
            middle.plot(steps, np.cumsum(counts), color=colour, lw=1.4, label=name)
        middle.set_ylabel("gates so far")
        middle.legend(frameon=False)
        _draw_left(bottom, trace)
        fixed = trace.about.get("route", {}).get("fixed_at_step")
        for axes in (top, *rest):
            axes.grid(axis="y", color=GRID, lw=0.6)
            if fixed is not None:
                axes.axvline(fixed, color="#999999", lw=0.8, ls="--")
    return figure


def _line(
    axes: Axes,
    points: Sequence[Mapping[str, float]],
    name: str,
    label: str,
    colour: str,
    marker: str = "",
) -> None:
    """One number of the points against their steps; the axis has the line's colour."""
    y = [point[name] for point in points]
    axes.plot([p["step"] for p in points], y, color=colour, lw=1, marker=marker, alpha=0.8)
    axes.set_ylabel(label, color=colour)


def _widen(axes: Axes, scores: Sequence[float]) -> None:
    """At least a tenth of the score from bottom to top: one row more or less is no cliff."""
    span, middle = 0.1 * max(map(abs, scores)), (min(scores) + max(scores)) / 2
    if max(scores) - min(scores) < span:
        axes.set_ylim(middle - span / 2, middle + span / 2)


def _draw_left(axes: Axes, trace: Trace) -> None:
    """Heads left, a line for each layer."""
    several = len(trace.layout.stacks) > 1
    counts = [
        (f"{stack} {layer}" if several else f"layer {layer}", left[:, layer])
        for stack, left in trace.left().items()
        for layer in range(left.shape[1])
    ]
    for number, (name, left) in enumerate(counts):
        style = ("-", "--", ":")[number // len(COLOURS) % 3]
        axes.plot(trace.steps, left, color=colour_of(number), ls=style, lw=1, label=name)
    axes.set_ylabel("heads left")
    axes.set_xlabel("step")
    axes.legend(frameon=False, ncols=4, fontsize=6)


def _three(trace: Trace) -> Sequence[int]:
    """Start, middle of the search, and end."""
    fixed = trace.about.get("route", {}).get("fixed_at_step", trace.steps[-1])
    middle = int(np.argmin(np.abs(np.array(trace.steps) - fixed / 2)))
    return sorted({0, middle, len(trace.steps) - 1})


def _title(trace: Trace) -> str:
    method, task = trace.about.get("method", "gates"), trace.about.get("task")
    return f"{method} on {task}" if task else str(method)
