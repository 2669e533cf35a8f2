"""A small chart for a terminal: a line of bars for each method, from few heads gone to many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group
from rich.text import Text

from headcount.base.text import printable
from headcount.views.tables.amounts import scored

BARS = "▁▂▃▄▅▆▇█"
COLOURS = ("blue", "dark_orange", "green", "magenta", "yellow", "cyan")


def bars(values: Sequence[float | None], low: float, high: float) -> str:
    """Numbers as bars between two ends; a blank for what is none.

    >>> bars([0.0, 0.5, 1.0, None], 0.0, 1.0)
    '▁▅█ '
    """
    wide = high - low or 1.0
    places = [None if v is None or v != v else (v - low) / wide for v in values]
    last = len(BARS) - 1
    return "".join(" " if p is None else BARS[round(min(max(p, 0), 1) * last)] for p in places)


def curve_chart(full: float | None, summary: Sequence[Mapping[str, Any]]) -> Group:
    """A line for each method: its mean score at each ratio, all on one scale."""
    ratios = sorted({row["ratio"] for row in summary})
    means = [row["mean"] for row in summary if row["mean"] == row["mean"]]
    ends = [*means, *([] if full is None else [full])]
    if not ends or not ratios:
        return Group()
    low, high = min(ends), max(ends)
    names = list(dict.fromkeys(row["method"] for row in summary))
    wide = max(map(len, names))
    span = f"{100 * ratios[0]:g} % to {100 * ratios[-1]:g} %"
    said = f"score from {scored(low)} ▁ to {scored(high)} █, heads removed from {span}"
    lines = [Text(f"{'':{wide}}  {said}")]
    for place, name in enumerate(names):
        own = {row["ratio"]: row["mean"] for row in summary if row["method"] == name}
        line = Text(f"{printable(name):{wide}}  ")
        drawn = bars([own.get(ratio) for ratio in ratios], low, high)
        line.append("".join(2 * each for each in drawn), style=COLOURS[place % len(COLOURS)])
        lines.append(line)
    return Group(*lines)
