"""Figures of several panels that the papers' items share: lines with bands, and squares."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headcount.views.figures import (
    colour_bar,
    colour_of,
    draw_band,
    ink_on,
    new_figure,
    scale_of,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Values = Mapping[float, Sequence[float]]
"""Value on the x axis -> the values of several seeds there."""
MANY = 5
"""With more lines than this the legend stands beside its panel."""
GAP = 2 / 3
"""Points further apart than this share of the axis are not joined: nothing was measured between."""
ASIDE = 0.02
"""How far apart points at one place are drawn, as a share of the axis."""


@dataclass(frozen=True)
class Lines:
    """A panel of lines through the means over seeds, from the lowest to the highest shaded."""

    title: str
    lines: Mapping[str, Values]
    x: str
    y: str
    level: float | None = None
    """A dashed line: all heads."""
    logarithmic: bool = False


def lines_figure(panels: Sequence[Lines], columns: int = 3) -> Figure:
    """A panel beside the other, with a legend in the first and where colours mean other lines."""
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    beside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1, 1)}
    with styled():
        figure = new_figure(3.6 * columns + 0.4, 2.9 * rows + 0.2)
        for at, panel in enumerate(panels):
            axes = figure.add_subplot(rows, columns, at + 1)
            _draw(axes, panel)
            if at == 0 or list(panel.lines) != list(panels[at - 1].lines):
                many = len(panel.lines) > MANY
                axes.legend(frameon=False, fontsize=7, **(beside if many else {}))
    return figure


def _draw(axes: Axes, panel: Lines) -> None:
    if panel.level is not None:
        axes.axhline(panel.level, color="#555555", lw=1, ls="--", label="all heads")
    every = sorted({x for values in panel.lines.values() for x in values})
    points = [name for name, x in panel.lines.items() if panel.level is not None and len(x) == 2]
    apart = ASIDE * (every[-1] - every[0])
    for index, (name, values) in enumerate(panel.lines.items()):
        if name in points and 0.0 in values:  # run at one place only: nothing leads there
            (at,) = (x for x in values if x)
            aside = at + apart * (points.index(name) - (len(points) - 1) / 2)
            ends = ([float(end(values[at]))] for end in (np.mean, min, max))
            draw_band(axes, [aside], *ends, colour=colour_of(index), label=name)
            continue
        for number, x in enumerate(_joined(sorted(values), every, panel.logarithmic)):
            mean = [float(np.mean(values[at])) for at in x]
            low, high = ([end(values[at]) for at in x] for end in (min, max))
            label = None if number else name
            draw_band(axes, x, mean, low, high, colour=colour_of(index), label=label)
    if panel.logarithmic:
        axes.set_xscale("log")
        axes.set_xticks(every, [f"{x:g}" for x in every])
        axes.set_xticks([], minor=True)
    axes.set_title(panel.title, fontsize=9)
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
    axes.grid(axis="y", color="#e5e5e5", lw=0.6)


def _joined(
    x: Sequence[float], every: Sequence[float], logarithmic: bool
) -> Iterator[Sequence[float]]:
    """A line's x values in stretches without a wide gap, of an axis with all these values."""
    at = {value: math.log(value) if logarithmic else value for value in every}
    widest = GAP * (at[every[-1]] - at[every[0]]) if len(every) > 2 else math.inf
    start = 0
    for stop in range(1, len(x) + 1):
        if stop == len(x) or at[x[stop]] - at[x[stop - 1]] > widest:
            yield x[start:stop]
            start = stop


def squares_figure(
    squares: Mapping[str, tuple[Sequence[str], np.ndarray]], *, label: str = "r", columns: int = 4
) -> Figure:
    """A square of correlations for each title, its names on both axes, numbers inside.

    All have the same colours: of one scale, and with a middle where any has values below 0.
    """
    scale = scale_of(*(values for _, values in squares.values()))
    columns = min(columns, len(squares))
    rows = -(-len(squares) // columns)
    with styled():
        figure = new_figure(3.3 * columns + 0.4, 3.1 * rows)
        for at, (title, (names, values)) in enumerate(squares.items()):
            axes = figure.add_subplot(rows, columns, at + 1)
            axes.set_title(title, fontsize=9)
            axes.set_xticks(range(values.shape[1]), names, rotation=60, fontsize=6)
            axes.set_yticks(range(values.shape[0]), names, fontsize=6)
            _numbers(axes, values, scale, label, 5)
    return figure


def table_figure(
    title: str, rows: Sequence[str], columns: Sequence[str], values: np.ndarray, *, label: str
) -> Figure:
    """One oblong of numbers: rows × columns."""
    with styled():
        figure = new_figure(0.75 * len(columns) + 2.6, 0.42 * len(rows) + 1.3)
        axes = figure.add_subplot()
        axes.set_title(title, fontsize=9)
        axes.set_xticks(range(len(columns)), columns, fontsize=7)
        axes.set_yticks(range(len(rows)), rows, fontsize=7)
        _numbers(axes, values, scale_of(values), label, 6)
    return figure


def _numbers(
    axes: Axes, values: np.ndarray, scale: Mapping[str, Any], label: str, size: float
) -> None:
    """Coloured fields with every number inside, light on dark, and the scale beside them."""
    image = axes.imshow(values, **scale)
    axes.tick_params(length=0)
    for (row, column), value in np.ndenumerate(values):
        style = {"ha": "center", "va": "center", "fontsize": size, "color": ink_on(image, value)}
        axes.text(column, row, f"{value:.2f}", **style)
    colour_bar(image, axes, label)
