"""The claims of On Attention Redundancy (NAACL 2021) on dropout, tested: RA10 to RA12."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from headcount.likeness.agreement import pairs
from headcount.papers.claims import TestedStatistic, tests, worst
from headcount.papers.claims_tools import noted, ranks_go_together
from headcount.papers.finished import PaperRuns
from headcount.papers.seeds import less_than, more_than

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
def three_slopes(found: PaperRuns) -> Sequence[TestedStatistic]:
    """Slopes of the mean JS distance between the ratios where the paper's curve turns."""
    rows: dict[str, list[TestedStatistic]] = {}
    for name in GROUPS:
        line = _line(found, GROUPS[name], "js")
        rows[name] = [_slope(f"{name} dropout", line, turn) for turn in TURNS]
    wholes = {name: _worst_of(each) for name, each in rows.items()}
    own = min((wholes[name] for name in DECIDING), key=_agreement_with_its_sign)
    verdict = worst([each.verdict for name in DECIDING for each in rows[name]])
    words = ", ".join(f"{name} dropout {wholes[name].verdict}" for name in GROUPS)
    said = (
        "slopes are least squares over all models with ratios from 0 to 0.2, from 0.2 to 0.7 and "
        "from 0.7 to 0.9, where the paper's curve turns; shown is the slope that fits worst, the "
        f"verdict is on all three for {' and '.join(DECIDING)} dropout ({words})"
    )
    every = [each for own in rows.values() for each in own]
    if found.is_whole([LONGER]):
        longer = _line(found, LONGER, "js")
        every.append(_slope("hidden dropout, trained twice as long", longer, TURNS[1]))
    return [noted(own, said, verdict), *every]


def _slope(said: str, line: Line, turn: tuple[float, float, int]) -> TestedStatistic:
    """Least squares over all models of a segment; the interval is Student's, of what they leave."""
    from scipy.stats import linregress, t

    start, end, sign = turn
    ratios = inside(sorted(next(iter(line.values()))), start, end)
    x = [ratio for _ in line for ratio in ratios]
    fit: Any = linregress(x, [own[ratio] for own in line.values() for ratio in ratios])
    slope, error, free = float(fit.slope), float(fit.stderr), len(x) - 2
    wide = float(t.ppf(0.975, free)) * error if free > 0 else math.nan
    rule = less_than(0.0) if sign < 0 else more_than(0.0)
    way = "down" if sign < 0 else "up"
    return TestedStatistic(
        what=f"slope of the mean JS distance from {start:g} to {end:g}, {said} ({way})",
        value=slope, low=slope - wide, high=slope + wide,
        verdict=rule(slope, slope - wide, slope + wide), seeds=len(line), n=len(x),
        of="models", note=f"ratios {', '.join(f'{ratio:g}' for ratio in ratios)}",
    )  # fmt: skip


def inside(ratios: Sequence[float], start: float, end: float) -> list[float]:
    """The ratios of a segment; where they are fewer than two, the nearest beyond join.

    >>> inside([0.0, 0.1, 0.3, 0.5], 0.0, 0.2), inside([0.0, 0.3, 0.6], 0.0, 0.2)
    ([0.0, 0.1], [0.0, 0.3])
    """
    there = [ratio for ratio in ratios if start - 1e-9 <= ratio <= end + 1e-9]
    if len(there) >= 2:
        return there
    return sorted(sorted(ratios, key=lambda ratio: max(start - ratio, ratio - end, 0.0))[:2])


def _agreement_with_its_sign(slope: TestedStatistic) -> float:
    return slope.value if "(up)" in slope.what else -slope.value


def _worst_of(slopes: Sequence[TestedStatistic]) -> TestedStatistic:
    """The slope that fits its sign worst, with the verdict on all of them."""
    own = min(slopes, key=_agreement_with_its_sign)
    return noted(own, "", worst([each.verdict for each in slopes]))


@tests("RA11", *GROUPS.values())
def falls_only(found: PaperRuns) -> Sequence[TestedStatistic]:
    """Dropout and the mean dCor distance, all models of a curve as points."""
    rows = {name: _rank(name, _line(found, GROUPS[name], "dcor")) for name in GROUPS}
    own = max((rows[name] for name in DECIDING), key=lambda row: row.value)
    verdict = worst([rows[name].verdict for name in DECIDING])
    words = ", ".join(f"{name} dropout {row.verdict}" for name, row in rows.items())
    said = f"the weaker of {' and '.join(DECIDING)} dropout, and the verdict on both ({words})"
    return [noted(own, said, verdict), *rows.values()]


def _rank(name: str, line: Line) -> TestedStatistic:
    points = [(ratio, value) for own in line.values() for ratio, value in own.items()]
    x, y = map(list, zip(*points, strict=True))
    ratios = sorted(set(x))
    means = [np.mean([own[ratio] for own in line.values()]) for ratio in ratios]
    falls = int((np.diff(means) < 0).sum())
    return ranks_go_together(
        f"Spearman of dropout and mean dCor distance, {name} dropout", x, y, less_than(0.0),
        seeds=len(line), n=len(points), of="models",
        note=f"the mean over seeds falls in {falls} of {len(ratios) - 1} steps",
    )  # fmt: skip


@tests("RA12", *GROUPS.values())
def which_matters(found: PaperRuns) -> Sequence[TestedStatistic]:
    """The range of the mean distance over hidden dropout against that over attention dropout."""
    rows = [_ranges(found, "hidden", name) for name in ("js", "dcor")]
    first = min(rows, key=lambda row: row.value)
    words = f"js {rows[0].verdict}, dcor {rows[1].verdict}"
    said = f"the smaller of two, and the verdict on both ({words})"
    both = [_ranges(found, "both", name) for name in ("js", "dcor")]
    return [noted(first, said, worst([row.verdict for row in rows])), *rows, *both]


def _ranges(found: PaperRuns, which: str, distance: str) -> TestedStatistic:
    """The ratio of two ranges, and an interval from how far seeds of one ratio are apart."""
    from scipy.stats import t

    (own, own_part, own_free), (other, part, free) = (
        _range(_line(found, GROUPS[name], distance)) for name in (which, "attention")
    )
    models = {run.cell.key for name in (which, "attention") for run in found.runs(GROUPS[name])}
    wide = math.nan
    if own_free + free:
        wide = float(t.ppf(0.975, own_free + free)) * math.hypot(own_part, part)
    value = own / other
    low, high = value * math.exp(-wide), value * math.exp(wide)
    return TestedStatistic(
        what=f"range of the mean {distance} distance over {which} dropout / over attention dropout",
        value=value, low=low, high=high, verdict=more_than(1.0)(value, low, high),
        seeds=len(_line(found, GROUPS[which], distance)), n=len(models), of="models",
        note=f"ranges {own:.4f} and {other:.4f}; chance alone gives a range, too",
    )  # fmt: skip


def _range(line: Line) -> tuple[float, float, int]:
    """(range of the means over seeds, its error as a part of it, degrees of freedom)."""
    values = np.array([[own[ratio] for ratio in sorted(own)] for own in line.values()])
    seeds, ratios = values.shape
    means, free = values.mean(0), (seeds - 1) * ratios
    whole = max(float(np.ptp(means)), 1e-12)
    variance = float(((values - means) ** 2).sum()) / free if free else math.nan
    return whole, math.sqrt(2 * variance / seeds) / whole if free else math.nan, free


def _line(found: PaperRuns, group: str, distance: str) -> Line:
    out: dict[int, dict[float, float]] = {}
    for each in found.runs(group):
        ratio = next(value for axis, value in each.cell.axes.items() if "dropout" in axis)
        values = each.redundancy()[distance].values
        out.setdefault(each.at("seed"), {})[float(ratio)] = float(pairs(values).mean())
    return out
