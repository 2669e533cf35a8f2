"""The claims of On Attention Redundancy (NAACL 2021) on dropout, tested: RA10 to RA12."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from headcount.likeness.agreement import pairs
from headcount.papers.claims import Statistic, tests, worst
from headcount.papers.estimates import (
    SampleSize,
    less_than,
    more_than,
    noted,
    rank_statistic,
    statistic,
)
from headcount.papers.finished import PaperRuns

Line: TypeAlias = Mapping[int, Mapping[float, float]]
"""Seed -> dropout ratio -> mean distance between two heads."""

GROUPS = {"both": "alike-both", "hidden": "alike-hidden", "attention": "alike-attention"}
"""Which dropout is varied -> the runs that measured what came of it."""
DECIDING = ("both", "hidden")
"""Where the dropout of hidden states varies, which the paper finds to matter."""
LONGER = "alike-long"
"""A group with longer trainings, of hidden dropout in the middle range; it need not be there."""
TURNS = ((0.0, 0.2, -1), (0.2, 0.7, 1), (0.7, 0.9, -1))
"""Where the paper's curve turns: (from, to, sign of the slope there)."""


@tests("RA10", *GROUPS.values())
def three_slopes(finished: PaperRuns) -> Sequence[Statistic]:
    """Slopes of the mean JS distance between the ratios where the paper's curve turns."""
    slopes: dict[str, list[Statistic]] = {}
    for name, group in GROUPS.items():
        line = dropout_line(finished, group, "js")
        slopes[name] = [_slope(f"{name} dropout", line, turn) for turn in TURNS]
    verdicts = {name: worst([row.verdict for row in rows]) for name, rows in slopes.items()}
    deciding = [row for name in DECIDING for row in slopes[name]]
    first = min(deciding, key=lambda row: row.value if "(up)" in row.what else -row.value)
    words = ", ".join(f"{name} dropout {word}" for name, word in verdicts.items())
    note = (
        "slopes are least squares over all models with ratios from 0 to 0.2, from 0.2 to 0.7 and "
        "from 0.7 to 0.9, where the paper's curve turns; shown is the slope that fits worst, the "
        f"verdict is on all three for {' and '.join(DECIDING)} dropout ({words})"
    )
    every = [row for rows in slopes.values() for row in rows]
    if finished.is_whole(LONGER):
        longer = dropout_line(finished, LONGER, "js")
        every.append(_slope("hidden dropout, trained twice as long", longer, TURNS[1]))
    return [noted(first, note, deciding), *every]


def _slope(which: str, line: Line, turn: tuple[float, float, int]) -> Statistic:
    """Least squares over all models of a segment; the interval is Student's, of what they leave."""
    from scipy.stats import linregress, t

    start, end, sign = turn
    ratios = inside(sorted(next(iter(line.values()))), start, end)
    x = [ratio for _ in line for ratio in ratios]
    fit: Any = linregress(x, [values[ratio] for values in line.values() for ratio in ratios])
    slope, error, free = float(fit.slope), float(fit.stderr), len(x) - 2
    wide = float(t.ppf(0.975, free)) * error if free > 0 else math.nan
    way, rule = ("down", less_than(0.0)) if sign < 0 else ("up", more_than(0.0))
    return statistic(
        f"slope of the mean JS distance from {start:g} to {end:g}, {which} ({way})",
        (slope, slope - wide, slope + wide),
        rule,
        SampleSize(len(x), "models", len(line)),
        f"ratios {', '.join(f'{ratio:g}' for ratio in ratios)}",
    )


def inside(ratios: Sequence[float], start: float, end: float) -> list[float]:
    """The ratios of a segment; where they are fewer than two, the nearest beyond join.

    >>> inside([0.0, 0.1, 0.3, 0.5], 0.0, 0.2), inside([0.0, 0.3, 0.6], 0.0, 0.2)
    ([0.0, 0.1], [0.0, 0.3])
    """
    within = [ratio for ratio in ratios if start - 1e-9 <= ratio <= end + 1e-9]
    if len(within) >= 2:
        return within
    return sorted(sorted(ratios, key=lambda ratio: max(start - ratio, ratio - end, 0.0))[:2])


@tests("RA11", *GROUPS.values())
def falls_only(finished: PaperRuns) -> Sequence[Statistic]:
    """Dropout and the mean dCor distance, all models of a curve as points."""
    rows = {name: _rank(name, dropout_line(finished, GROUPS[name], "dcor")) for name in GROUPS}
    deciding = [rows[name] for name in DECIDING]
    words = ", ".join(f"{name} dropout {row.verdict}" for name, row in rows.items())
    note = f"the weaker of {' and '.join(DECIDING)} dropout, and the verdict on both ({words})"
    first = max(deciding, key=lambda row: row.value)
    return [noted(first, note, deciding), *rows.values()]


def _rank(name: str, line: Line) -> Statistic:
    points = [point for values in line.values() for point in values.items()]
    x, y = map(list, zip(*points, strict=True))
    ratios = sorted(set(x))
    means = [np.mean([values[ratio] for values in line.values()]) for ratio in ratios]
    falls = int((np.diff(means) < 0).sum())
    what = f"Spearman of dropout and mean dCor distance, {name} dropout"
    note = f"the mean over seeds falls in {falls} of {len(ratios) - 1} steps"
    size = SampleSize(len(points), "models", len(line))
    return rank_statistic(what, x, y, less_than(0.0), size, note)


@tests("RA12", *GROUPS.values())
def which_matters(finished: PaperRuns) -> Sequence[Statistic]:
    """The range of the mean distance over hidden dropout against that over attention dropout."""
    js, dcor, *both = (
        _ranges(finished, which, name) for which in ("hidden", "both") for name in ("js", "dcor")
    )
    note = f"the smaller of two, and the verdict on both (js {js.verdict}, dcor {dcor.verdict})"
    first = min(js, dcor, key=lambda row: row.value)
    return [noted(first, note, [js, dcor]), js, dcor, *both]


def _ranges(finished: PaperRuns, which: str, distance: str) -> Statistic:
    """The ratio of two ranges, and an interval from how far seeds of one ratio are apart."""
    from scipy.stats import t

    groups = (GROUPS[which], GROUPS["attention"])
    line, other = (dropout_line(finished, group, distance) for group in groups)
    (top, top_error, top_free), (bottom, bottom_error, bottom_free) = map(_range, (line, other))
    models = {run.cell.key for group in groups for run in finished.runs(group)}
    free, value = top_free + bottom_free, top / bottom
    wide = float(t.ppf(0.975, free)) * math.hypot(top_error, bottom_error) if free else math.nan
    return statistic(
        f"range of the mean {distance} distance over {which} dropout / over attention dropout",
        (value, value * math.exp(-wide), value * math.exp(wide)),
        more_than(1.0),
        SampleSize(len(models), "models", len(line)),
        f"ranges {top:.4f} and {bottom:.4f}; chance alone gives a range, too",
        "log",
    )


def _range(line: Line) -> tuple[float, float, int]:
    """(range of the means over seeds, its error as a part of it, degrees of freedom)."""
    values = np.array(
        [[by_ratio[ratio] for ratio in sorted(by_ratio)] for by_ratio in line.values()]
    )
    seeds, ratios = values.shape
    means, free = values.mean(0), (seeds - 1) * ratios
    whole = max(float(np.ptp(means)), 1e-12)
    variance = float(((values - means) ** 2).sum()) / free if free else math.nan
    return whole, math.sqrt(2 * variance / seeds) / whole if free else math.nan, free


def dropout_line(finished: PaperRuns, group: str, distance: str) -> Line:
    """Seed -> dropout ratio -> mean distance between two heads, of a group that varies dropout."""
    line: dict[int, dict[float, float]] = {}
    for run in finished.runs(group):
        ratio = next(value for axis, value in run.cell.axes.items() if "dropout" in axis)
        distances = pairs(run.redundancy()[distance].values)
        line.setdefault(run.at("seed"), {})[float(ratio)] = float(distances.mean())
    return line
