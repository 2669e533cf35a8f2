"""What tests of claims share: verdicts of several, most of the tasks, areas under curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from headcount.changes.correlation import correlate
from headcount.papers.claims import TestedStatistic, Word
from headcount.papers.finished import FinishedRun, PaperRuns
from headcount.papers.seeds import Rule, more_than
from headcount.statistics import rank_correlation
from headcount.tasks.metrics import get_metric

Curve: TypeAlias = Sequence[tuple[float, float]]
"""(share of heads that went, relative score), from all heads on."""
Curves: TypeAlias = Mapping[str, Mapping[int, Curve]]
"""Task -> seed -> curve."""
ALPHA = 0.05


def noted(tested: TestedStatistic, note: str, verdict: Word | None = None) -> TestedStatistic:
    """The same with one more thing to say, and the verdict where several statistics decide."""
    said = "; ".join(filter(None, (tested.note, note)))
    return replace(tested, note=said, verdict=verdict or tested.verdict)


def first_there(found: PaperRuns, *groups: str) -> str:
    """The first of some groups that the scale has; the last where it has none."""
    return next((name for name in groups if found.cells.get(name)), groups[-1])


def ranks_go_together(
    what: str, x: Sequence[float], y: Sequence[float], rule: Rule, **about: Any
) -> TestedStatistic:
    """Spearman's rho by Fisher's z; decided only where few orders of the points do as well.

    With all points in order the interval has no width, however few they are.
    """
    found, p = correlate(x, y), rank_correlation(x, y)["p"]
    value, low, high = found.spearman, found.spearman_low, found.spearman_high
    word = rule(value, low, high) if p < ALPHA else "undecided"
    note = "; ".join(filter(None, (f"p {p:.2g}", about.pop("note", ""))))
    return TestedStatistic(
        what=what, value=value, low=low, high=high, verdict=word, note=note, **about
    )


def on_most(
    what: str, tasks: Sequence[TestedStatistic], passed: Sequence[bool], note: str = ""
) -> TestedStatistic:
    """Whether more than half of the tasks pass, each of them decided by its own interval.

    The value is the share of tasks that pass by their mean; the ends are the share that is sure
    to pass and the share that may.
    """
    words = [each.verdict for each in tasks]
    sure, may = (
        sum(word in those for word in words) / len(words)
        for those in (("holds",), ("holds", "undecided"))
    )
    value = sum(passed) / len(passed)
    said = "the ends are the share of tasks that surely pass and that may"
    return TestedStatistic(
        what=what, value=value, low=sure, high=may, verdict=more_than(0.5)(value, sure, may),
        seeds=min(each.seeds for each in tasks), n=len(tasks), of="tasks",
        note="; ".join(filter(None, (said, note))),
    )  # fmt: skip


def relative(finished: FinishedRun) -> float:
    """A cut's score relative to the model's before it: NaN where that is 0 or less.

    A score that is undefined after the cut, as one answer to all rows has no rank, is worth 0.
    """
    before, after = float(finished.record["scores"]["before"]["score"] or 0), finished.score
    if before <= 0:
        return math.nan
    if math.isnan(after):
        return 0.0
    return after / before if get_metric(finished.metric).higher_is_better else before / after


def curves(found: PaperRuns, group: str, **wanted: object) -> dict[str, dict[int, Curve]]:
    """The curves of the relative score, with all heads as the first point of each."""
    points: dict[str, dict[int, list[tuple[float, float]]]] = {}
    for each in found.runs(group, **wanted):
        kept = relative(each)
        if not math.isnan(kept):
            own = points.setdefault(str(each.at("task")), {})
            own.setdefault(int(each.at("seed")), [(0.0, 1.0)]).append((each.sparsity, kept))
    return {
        task: {seed: sorted(own, key=lambda point: point[0]) for seed, own in seeds.items()}
        for task, seeds in points.items()
    }


def last_of(*those: Curves) -> float:
    """The share of heads up to which all curves go."""
    return min(
        curve[-1][0] for tasks in those for seeds in tasks.values() for curve in seeds.values()
    )


def area(curve: Curve, to: float) -> float:
    """The mean height of a curve from no head removed to this share of them (trapezoids).

    >>> round(area([(0.0, 1.0), (0.5, 1.0), (1.0, 0.0)], 1.0), 9), area([(0, 1), (1, 0)], 0.5)
    (0.75, 0.75)
    """
    x, y = (np.array(side, dtype=float) for side in zip(*curve, strict=True))
    inside = x < to
    xs, ys = np.append(x[inside], to), np.append(y[inside], np.interp(to, x, y))
    return float(np.trapezoid(ys, xs) / to)


def areas(tasks: Curves, to: float) -> dict[str, dict[int, float]]:
    """Task -> seed -> the area under the curve."""
    return {
        task: {seed: area(curve, to) for seed, curve in seeds.items()}
        for task, seeds in tasks.items()
    }
