"""Curves of pruning, drawn: score against the share of heads removed, and which heads go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headcount.views.figures import (
    COLOURS,
    STYLE,
    colour_bar,
    need_matplotlib,
    new_figure,
    relative_axis,
    save_both,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headcount.heads import Scores

BAND = 0.18
"""How much of its colour a band has."""


def curve_figure(
    summary: Sequence[Mapping[str, Any]], full: Mapping[str, Any], *, title: str, metric: str
) -> Figure:
    """A line of means for each method, its best-to-worst band, and the unpruned model's line.

    The right axis is relative to the full model, whose own interval is the grey band. Lines begin
    at 0, with the full model.
    """
    with need_matplotlib().rc_context(STYLE):
        figure = new_figure(6.4, 4.0)
        axes = figure.add_subplot()
        draw_full(axes, full)
        for place, method in enumerate(dict.fromkeys(row["method"] for row in summary)):
            rows = sorted(
                (row for row in summary if row["method"] == method), key=lambda row: row["ratio"]
            )
            colour = COLOURS[place % len(COLOURS)]
            # every curve begins with all heads
            x = [0, *(100 * row["ratio"] for row in rows)]
            worst, mean, best = (
                [full["score"], *(row[name] for row in rows)] for name in ("worst", "mean", "best")
            )
            axes.fill_between(x, worst, best, color=colour, alpha=BAND, lw=0)
            label = f"{method}, mean of {rows[0]['seeds']}"
            axes.plot(x, mean, ".-", color=colour, lw=1.4, label=label)
        axes.set_xlabel("heads removed, %")
        axes.set_ylabel(metric)
        axes.set_title(title)
        axes.grid(axis="y", color="#e5e5e5", lw=0.6)
        explain_band(axes, summary)
        axes.legend(frameon=False)
        if full["score"] > 0:
            relative_axis(axes, full["score"])
    return figure


def draw_full(axes: Any, full: Mapping[str, Any]) -> None:
    """The model with all heads: a dashed line in the grey band of its interval."""
    label = "its 95 % interval"
    axes.axhline(full["score"], color="#555555", lw=1, ls="--", label="all heads")
    if full["low"] is not None:
        axes.axhspan(full["low"], full["high"], color="#999999", alpha=0.15, lw=0, label=label)


def explain_band(axes: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    """A line in the legend for what the coloured bands are, where there are any."""
    if any(row["seeds"] > 1 for row in rows):
        axes.fill_between([], [], color="#3b3b3b", alpha=BAND, lw=0, label="band: worst to best")


def chance_figure(chance: Mapping[float, Scores], *, title: str) -> Figure:
    """For each ratio and stack, layers × heads: how often a head was pruned, from 0 to 1."""
    need_matplotlib()
    from matplotlib.ticker import MaxNLocator

    ratios = list(chance)
    stacks = list(next(iter(chance.values())).by_layer())
    columns = min(5, len(ratios))
    lines = -(-len(ratios) // columns)
    rows = len(stacks) * lines
    shapes = [grid_of(layers).shape for layers in next(iter(chance.values())).by_layer().values()]
    high = sum(min(1.7 * layers / heads, 4) + 0.55 for layers, heads in shapes)
    with need_matplotlib().rc_context(STYLE):
        figure = new_figure(2.1 * columns + 0.7, lines * high + 0.4)
        figure.suptitle(title, x=0.01, ha="left")
        image, last = None, None
        for row, stack in enumerate(stacks):
            for place, ratio in enumerate(ratios):
                line = row * lines + place // columns
                axes = figure.add_subplot(rows, columns, line * columns + place % columns + 1)
                image = axes.imshow(
                    grid_of(chance[ratio].by_layer()[stack]), cmap="viridis", vmin=0, vmax=1
                )
                name = f"{stack}, " if len(stacks) > 1 else ""
                axes.set_title(f"{name}{100 * ratio:g} %", fontsize=8)
                axes.tick_params(length=0, labelsize=6)
                for axis in (axes.xaxis, axes.yaxis):
                    axis.set_major_locator(MaxNLocator(integer=True))
                axes.set_xlabel("head" if line == rows - 1 else "", fontsize=7)
                axes.set_ylabel("" if place % columns else "layer", fontsize=7)
                last = axes if row == 0 and place == columns - 1 else last
        if image is not None:
            colour_bar(image, last, "share of trials")
    return figure


def grid_of(layers: Sequence[Sequence[float]]) -> np.ndarray:
    """(layer, head), blank where a layer has fewer heads than another."""
    widest = max((len(layer) for layer in layers), default=0)
    grid = np.full((len(layers), max(widest, 1)), np.nan)
    for layer, values in enumerate(layers):
        grid[layer, : len(values)] = values
    return grid


def save_figures(found: Any, out: Path, title: str) -> None:
    """A curve's figures in its folder: curve, and chance where it clustered."""
    save_both(curve_figure(found.summary(), found.full, title=title, metric=found.metric),
              out / "curve")  # fmt: skip
    if found.chance:
        maps = chance_figure(found.chance, title="How often each head goes, by clustering")
        save_both(maps, out / "chance")
