"""Figures of learned gates: values and gates as layers × heads, and their way there.

As in AutoAttention, Fig. 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headcount.base.errors import UsageError
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
    matplotlib = need_matplotlib()
    if not trace.steps:
        raise UsageError("This trace of gates has no step to draw.")
    columns = _three(trace)
    stacks = trace.layout.stacks
    reach = max(float(np.abs(trace.values[place]).max()) for place in columns) or 1.0
    high = sum(min(1.9 * len(stack.heads) / max([*stack.heads, 1]), 4) + 0.6 for stack in stacks)
    with matplotlib.rc_context(STYLE):
        figure = new_figure(2.3 * len(columns) + 1.2, 2 * high + 0.4)
        figure.suptitle(_title(trace), x=0.01, ha="left")
        grid = figure.subplots(2 * len(stacks), len(columns), squeeze=False)
        for row, stack in enumerate(stacks):
            _draw_stack(grid[2 * row : 2 * row + 2], trace, columns, stack.name, reach)
    return figure


def _draw_stack(grid: Any, trace: Trace, columns: Sequence[int], stack: str, reach: float) -> None:
    """A row of values with their scale, and below it a row of gates with what its colours mean."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    name = f"{stack}, " if len(trace.layout.stacks) > 1 else ""
    for place, above, below in zip(columns, *grid, strict=True):
        values = _grid(trace, trace.values[place], stack)
        image = above.imshow(values, cmap="RdBu_r", vmin=-reach, vmax=reach)
        above.set_title(f"{name}step {trace.steps[place]}", fontsize=8)
        states = _grid(trace, trace.states[place].astype(float), stack)
        below.imshow(states, cmap=ListedColormap([CLOSED, OPEN]), vmin=0, vmax=1)
        below.set_title(f"{int(np.nansum(states))} open", fontsize=8)
        for axes in (above, below):
            _dress(axes, label=place == columns[0])
        below.set_xlabel("head", fontsize=7)
        if place == columns[-1]:
            colour_bar(image, above, "trained value")
            below.legend(
                handles=[Patch(color=OPEN, label="open"), Patch(color=CLOSED, label="closed")],
                loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=7,
            )  # fmt: skip


def path_figure(trace: Trace) -> Figure:
    """Sparsity with the score, gates closed and reopened, and heads left per layer, over steps.

    Where no scores were measured over the run, the training loss stands beside the sparsity.
    """
    scores, losses = ([p for p in trace.scores if name in p] for name in ("score", "loss"))
    with need_matplotlib().rc_context(STYLE):
        figure = new_figure(6.4, 8.4 if scores and losses else 6.6)
        top, *rest = figure.subplots(4 if scores and losses else 3, 1, sharex=True)
        heads, steps = len(trace.layout), np.arange(1, len(trace.opened) + 1)
        top.plot(steps, 1 - np.array(trace.opened) / heads, color=COLOURS[0], lw=1.4)
        top.set_ylabel("share of gates closed", color=COLOURS[0])
        top.set_title(_title(trace))
        if scores:
            metric = f"{trace.about.get('metric', 'score')}, n = {scores[0]['n']}"
            right = top.twinx()
            _line(right, scores, "score", metric, COLOURS[1], marker=".")
            _widen(right, [point["score"] for point in scores])
        if losses:
            _line(rest[0] if scores else top.twinx(), losses, "loss", "training loss", COLOURS[6])
        middle, low = rest[-2:]
        for name, counts, colour in (
            ("closed", trace.closings, COLOURS[1]),
            ("reopened", trace.reopenings, COLOURS[2]),
        ):
            middle.plot(steps, np.cumsum(counts), color=colour, lw=1.4, label=name)
        middle.set_ylabel("gates so far")
        middle.legend(frameon=False)
        _draw_left(low, trace)
        fixed = trace.about.get("route", {}).get("fixed_at_step")
        for axes in (top, *rest):
            axes.grid(axis="y", color="#e5e5e5", lw=0.6)
            if fixed is not None:
                axes.axvline(fixed, color="#999999", lw=0.8, ls="--")
    return figure


def _line(
    axes: Any, points: Sequence[Any], name: str, label: str, colour: str, marker: str = ""
) -> None:
    """One number of the points against their steps; the axis has the line's colour."""
    y = [point[name] for point in points]
    axes.plot([p["step"] for p in points], y, color=colour, lw=1, marker=marker, alpha=0.8)
    axes.set_ylabel(label, color=colour)


def _widen(axes: Any, scores: Sequence[float]) -> None:
    """At least a tenth of the score from bottom to top: one row more or less is no cliff."""
    wide, middle = 0.1 * max(map(abs, scores)), (min(scores) + max(scores)) / 2
    if max(scores) - min(scores) < wide:
        axes.set_ylim(middle - wide / 2, middle + wide / 2)


def _draw_left(axes: Any, trace: Trace) -> None:
    """Heads left, a line for each layer."""
    place = 0
    for stack, left in trace.left().items():
        for layer in range(left.shape[1]):
            name = f"{stack} {layer}" if len(trace.layout.stacks) > 1 else f"layer {layer}"
            colour, style = COLOURS[place % len(COLOURS)], ("-", "--", ":")[place // 7 % 3]
            axes.plot(trace.steps, left[:, layer], color=colour, ls=style, lw=1, label=name)
            place += 1
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


def _grid(trace: Trace, flat: np.ndarray, stack: str) -> np.ndarray:
    """(layer, head) of one stack, blank where a layer has fewer heads than another."""
    layers = len(trace.layout[stack].heads)
    own = [trace.layout.original(head) for head in trace.layout]
    widest = max((head.index + 1 for head in own if head.stack == stack), default=1)
    grid = np.full((layers, widest), np.nan)
    for head, value in zip(own, flat, strict=True):
        if head.stack == stack:
            grid[head.layer, head.index] = value
    return grid


def _dress(axes: Any, *, label: bool) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.tick_params(length=0, labelsize=6)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))
    if label:
        axes.set_ylabel("layer", fontsize=7)
