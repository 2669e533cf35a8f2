"""Figures of several panels that the papers' items share: lines with bands, and squares."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headcount.statistics import interval
from headcount.views.figures import (
    COLOURS,
    STYLE,
    colour_bar,
    draw_band,
    ink_on,
    need_matplotlib,
    new_figure,
    scale_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Values = Mapping[float, Sequence[float]]
"""Place on the x axis -> what several seeds gave there."""
MANY = 5
"""With more lines than this the legend stands beside its panel."""
GAP = 2 / 3
"""Points further apart than this share of the axis are not joined: nothing was measured between."""


@dataclass(frozen=True, kw_only=True)
class Lines:
    """A panel of lines."""

    title: str
    lines: Mapping[str, Values]
    x: str
    y: str
    level: float | None = None
    """A dashed line: all heads."""
    band: str = "ends"
    """What is shaded: the ends of the seeds, or the 95 % interval of their mean."""
    logarithmic: bool = False


def lines_figure(panels: Sequence[Lines], columns: int = 3) -> Figure:
    """A panel beside the other, with a legend in the first and where colours mean other lines."""
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    with need_matplotlib().rc_context(STYLE):
        figure = new_figure(3.6 * columns + 0.4, 2.9 * rows + 0.2)
        for place, panel in enumerate(panels):
            axes = figure.add_subplot(rows, columns, place + 1)
            _draw(axes, panel)
            if place == 0 or list(panel.lines) != list(panels[place - 1].lines):
                beside = {"loc": "upper left", "bbox_to_anchor": (1, 1)}
                axes.legend(
                    frameon=False, fontsize=7, **(beside if len(panel.lines) > MANY else {})
                )
    return figure


def _draw(axes: Any, panel: Lines) -> None:
    if panel.level is not None:
        axes.axhline(panel.level, color="#555555", lw=1, ls="--", label="all heads")
    places = sorted({x for values in panel.lines.values() for x in values})
    for place, (name, values) in enumerate(panel.lines.items()):
        colour = COLOURS[place % len(COLOURS)]
        for number, x in enumerate(_joined(sorted(values), places, panel.logarithmic)):
            mean = [float(np.mean(values[each])) for each in x]
            ends = [_ends(values[each], panel.band) for each in x]
            low, high = ([end[side] for end in ends] for side in (0, 1))
            label = None if number else name
            draw_band(axes, x, mean, low, high, colour=colour, label=label)
    if panel.logarithmic:
        axes.set_xscale("log")
        axes.set_xticks(places, [f"{x:g}" for x in places])
        axes.set_xticks([], minor=True)
    axes.set_title(panel.title, fontsize=9)
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
    axes.grid(axis="y", color="#e5e5e5", lw=0.6)


def _joined(
    x: Sequence[float], places: Sequence[float], logarithmic: bool
) -> Iterator[Sequence[float]]:
    """A line's places in stretches without a wide gap, of an axis with these places."""
    at = {each: math.log(each) if logarithmic else each for each in places}
    widest = GAP * (at[places[-1]] - at[places[0]]) if len(places) > 2 else math.inf
    start = 0
    for stop in range(1, len(x) + 1):
        if stop == len(x) or at[x[stop]] - at[x[stop - 1]] > widest:
            yield x[start:stop]
            start = stop


def _ends(values: Sequence[float], band: str) -> tuple[float, float]:
    if band == "interval":
        _, low, high = interval(values)
        if not math.isnan(low):
            return low, high
    return float(min(values)), float(max(values))


def squares_figure(
    squares: Mapping[str, tuple[Sequence[str], np.ndarray]], *, label: str = "r", columns: int = 4
) -> Figure:
    """A square of correlations for each title, its names on both axes, numbers inside.

    All have the same colours: of one scale, and with a middle where any has values below 0.
    """
    scale = scale_of(*(values for _, values in squares.values()))
    columns = min(columns, len(squares))
    rows = -(-len(squares) // columns)
    with need_matplotlib().rc_context(STYLE):
        figure = new_figure(3.3 * columns + 0.4, 3.1 * rows)
        for place, (title, (names, values)) in enumerate(squares.items()):
            axes = figure.add_subplot(rows, columns, place + 1)
            image = axes.imshow(values, **scale)
            _square(axes, image, title, names, values)
            colour_bar(image, axes, label)
    return figure


def _square(axes: Any, image: Any, title: str, names: Sequence[str], values: np.ndarray) -> None:
    axes.set_title(title, fontsize=9)
    axes.set_xticks(range(values.shape[1]), names[: values.shape[1]], rotation=60, fontsize=6)
    axes.set_yticks(range(values.shape[0]), names[: values.shape[0]], fontsize=6)
    axes.tick_params(length=0)
    _numbers(axes, image, values, 5)


def _numbers(axes: Any, image: Any, values: np.ndarray, size: float) -> None:
    """Every number inside its field, light on dark."""
    for row, column in np.ndindex(*values.shape):
        value = float(values[row, column])
        axes.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=size,
                  color=ink_on(image, value))  # fmt: skip


def table_figure(
    title: str, rows: Sequence[str], columns: Sequence[str], values: np.ndarray, *, label: str
) -> Figure:
    """One oblong of numbers: rows × columns."""
    with need_matplotlib().rc_context(STYLE):
        figure = new_figure(0.75 * len(columns) + 2.6, 0.42 * len(rows) + 1.3)
        axes = figure.add_subplot()
        image = axes.imshow(values, **scale_of(values))
        axes.set_title(title, fontsize=9)
        axes.set_xticks(range(len(columns)), columns, fontsize=7)
        axes.set_yticks(range(len(rows)), rows, fontsize=7)
        axes.tick_params(length=0)
        _numbers(axes, image, values, 6)
        colour_bar(image, axes, label)
    return figure
