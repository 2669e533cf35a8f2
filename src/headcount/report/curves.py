"""Curves of pruning, drawn: score against the share of heads removed, and which heads go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headcount.report.figures import COLOURS, STYLE, need_matplotlib, new_figure, relative_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headcount.heads import Scores


def curve_figure(
    summary: Sequence[Mapping[str, Any]], full: Mapping[str, Any], *, title: str, metric: str
) -> Figure:
    """A line of means for each method, its best-to-worst band, and the unpruned model's line.

    The right axis is relative to the full model, whose own interval is the grey band.
    """
    with need_matplotlib().rc_context(STYLE):
        figure = new_figure(6.4, 4.0)
        axes = figure.add_subplot()
        axes.axhspan(full["low"], full["high"], color="#999999", alpha=0.15, lw=0)
        axes.axhline(full["score"], color="#555555", lw=1, ls="--", label="all heads")
        for place, method in enumerate(dict.fromkeys(row["method"] for row in summary)):
            rows = sorted(
                (row for row in summary if row["method"] == method), key=lambda row: row["ratio"]
            )
            colour = COLOURS[place % len(COLOURS)]
            x = [100 * row["ratio"] for row in rows]
            axes.fill_between(
                x, [row["worst"] for row in rows], [row["best"] for row in rows],
                color=colour, alpha=0.18, lw=0,
            )  # fmt: skip
            label = f"{method}, mean of {rows[0]['seeds']}"
            axes.plot(x, [row["mean"] for row in rows], ".-", color=colour, lw=1.4, label=label)
        axes.set_xlabel("heads removed, %")
        axes.set_ylabel(metric)
        axes.set_title(title)
        axes.grid(axis="y", color="#e5e5e5", lw=0.6)
        axes.legend(frameon=False)
        if full["score"] > 0:
            relative_axis(axes, full["score"])
    return figure


def chance_figure(chance: Mapping[float, Scores], *, title: str) -> Figure:
    """For each ratio and stack, layers × heads: how often a head was pruned, from 0 to 1."""
    need_matplotlib()
    from matplotlib.ticker import MaxNLocator

    ratios = list(chance)
    stacks = list(next(iter(chance.values())).by_layer())
    columns = min(5, len(ratios))
    rows = len(stacks) * -(-len(ratios) // columns)
    with need_matplotlib().rc_context(STYLE):
        figure = new_figure(2.1 * columns + 0.6, 2.0 * rows + 0.4)
        figure.suptitle(title, x=0.01, ha="left")
        every, image = [], None
        for row, stack in enumerate(stacks):
            for place, ratio in enumerate(ratios):
                line = row * -(-len(ratios) // columns) + place // columns
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
                every.append(axes)
        if image is not None:
            bar = figure.colorbar(image, ax=every, fraction=0.03, pad=0.02)
            bar.set_label("share of trials", fontsize=7)
            bar.ax.tick_params(length=2, labelsize=6)
    return figure


def grid_of(layers: Sequence[Sequence[float]]) -> np.ndarray:
    """(layer, head), blank where a layer has fewer heads than another."""
    widest = max((len(layer) for layer in layers), default=0)
    grid = np.full((len(layers), max(widest, 1)), np.nan)
    for layer, values in enumerate(layers):
        grid[layer, : len(values)] = values
    return grid
