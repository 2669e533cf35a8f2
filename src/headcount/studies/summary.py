"""Runs that differ by their seed alone: their mean with its interval, and tests between groups.

This is the one summary: of curves, comparisons and sweeps, of study files and their tables, and of
the page. An interval stays inside the range of its metric, and is never of width 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headcount.statistics import compare_pairs, interval
from headcount.statistics.comparisons import Label
from headcount.tasks.metrics import METRICS, step_of

UNKNOWN = (math.nan, math.nan)
"""The ends of an interval that is not known."""
NARROW = 1e-12
"""Ends that are nearer are one number: the values have no spread."""


@dataclass(frozen=True)
class Scale:
    """What scores are measured in."""

    metric: str | None = None
    """None, or one that is not registered (of a plugin): no range and no steps."""
    rows: int | None = None
    """How many rows were scored."""
    level: float | None = None
    """A typical score, for the steps of a metric without a largest value; 1 where not given."""

    @property
    def higher_is_better(self) -> bool:
        """Whether more is better; of an unknown metric, it is."""
        return self.metric not in METRICS or METRICS[self.metric].higher_is_better

    @property
    def step(self) -> float:
        """By how much one row changes a score, about."""
        if self.metric is None or self.metric not in METRICS:
            return 0.0
        return step_of(self.metric, self.rows, self.level or 1.0)

    def limits(self, *, differences: bool = False) -> tuple[float, float]:
        """The least and the largest score, or difference between scores."""
        if self.metric not in METRICS:
            return -math.inf, math.inf
        low, high = METRICS[self.metric].range
        return (low - high, high - low) if differences else (low, high)


NO_SCALE = Scale()
"""Of numbers that are not in a metric."""
SHARE = Scale("accuracy")
"""Of shares, from 0 to 1, as accuracy is one."""


def over_seeds(
    values: Sequence[float],
    scale: Scale = NO_SCALE,
    *,
    differences: bool = False,
    single: tuple[float | None, float | None] = UNKNOWN,
) -> tuple[float, float, float]:
    """Mean over seeds with its 95 % interval, whose ends are NaN where it is not known.

    `single` is the interval of one value by itself, over its rows. Without a level in `scale`, it
    is the mean.

    >>> [round(value, 3) for value in over_seeds([0.8, 0.8], Scale("accuracy", 100))]
    [0.8, 0.774, 0.826]
    >>> over_seeds([0.72, 0.88], Scale("accuracy", 100))
    (0.8, 0.0, 1.0)
    >>> over_seeds([0.8, 0.8])
    (0.8, nan, nan)
    """
    if not values:
        return math.nan, math.nan, math.nan
    if scale.level is None:
        scale = Scale(scale.metric, scale.rows, sum(values) / len(values))
    mean, low, high = interval(values, scale.limits(differences=differences), scale.step)
    if len(values) == 1:
        low, high = (math.nan if end is None else end for end in single)
    return (mean, low, high) if high - low > NARROW else (mean, math.nan, math.nan)


def compare_with(
    groups: Mapping[Label, Mapping[int, float]],
    references: Iterable[Callable[[Label], Label]],
    *scales: Scale,
) -> dict[tuple[Label, Label], dict[str, Any]]:
    """Every group of scores by seed against its references, where there are such groups.

    The result is by (group, reference). All of it is one table: corrected for the number of its
    comparisons (Holm). Scores may be in several `scales` that have the better end in common; the
    widest step of them counts.
    """
    pairs = [
        (label, other)
        for reference in references
        for label in groups
        if (other := reference(label)) in groups and other != label
    ]
    step = max((scale.step for scale in scales), default=0.0)
    better = scales[0].higher_is_better if scales else True
    return compare_pairs(groups, pairs, higher_is_better=better, step=step)
