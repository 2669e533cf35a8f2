"""How likely a loss is within a bound: bootstrap resamples of a difference against the bound.

loss = within("f1", full, [pruned], 0.01, relative=True)
loss.difference, loss.probability, loss.within_bound
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headcount.base.errors import UsageError
from headcount.statistics import most_telling
from headcount.tasks.drawing import table_of
from headcount.tasks.metrics import (
    Difference,
    Outcome,
    drawn,
    ends_of,
    get_metric,
    no_ends,
    too_few,
)

CHANGED = 0.05
"""Share of rows on which a pruned model predicts something else, where nothing is known yet."""


@dataclass(frozen=True, kw_only=True)
class BoundProbability:
    """The loss against all heads, and the probability that it is within a bound."""

    difference: Difference
    probability: float
    """The probability: the share of the resamples, on the side of a loss, in which the loss is
    within the bound. NaN without resamples, and where rows are too few."""
    possible: float
    """The same on the side of a gain: where this is small, more rows would not help."""
    within_bound: bool
    """Whether the loss on the rows themselves is within the bound."""


def within(
    metric: str,
    before: Outcome,
    afters: Sequence[Outcome],
    bound: float,
    *,
    relative: bool = False,
    bootstrap: int = 1000,
    seed: int = 0,
) -> BoundProbability:
    """How likely a loss is at most `bound`: a share of the score before, where it is `relative`.

    `afters` are several models of one kind (seeds) on the same rows: their mean is compared with
    before, and every resample draws rows and models again. Of a metric that is better when it is
    lower the loss is a rise.
    """
    known = get_metric(metric)
    sign = 1.0 if known.higher_is_better else -1.0
    scores = [known.score(one.predictions, one.labels) for one in (before, *afters)]
    for after in afters:
        if not np.array_equal(before.labels, after.labels):
            raise UsageError(f"A difference in {metric} needs the same rows before and after.")

    def inside(first: np.ndarray | float, last: np.ndarray | float) -> np.ndarray:
        allowed = bound * np.abs(first) if relative else bound
        # rounding must not decide where nothing was lost
        return np.asarray(sign * (first - last) <= allowed + 1e-12 * np.maximum(1, np.abs(first)))

    mean = float(np.mean(scores[1:]))
    value, fits = mean - scores[0], bool(inside(scores[0], mean))
    few = too_few(known, len(before)) if bootstrap else ""
    if not bootstrap or few or np.isnan(scores).any():
        lost = Difference(metric=metric, value=value, **no_ends(few))
        return BoundProbability(
            difference=lost, probability=math.nan, possible=math.nan, within_bound=fits
        )
    sides = drawn(known, [before, *afters], paired=True, bootstrap=bootstrap, seed=seed)
    shares = [float(inside(*side.T).mean()) for side in (sides.lower, sides.upper)]
    # a loss is at the lower end, or, where lower is better, at the upper one
    probability, possible = shares if sign > 0 else shares[::-1]
    lost = Difference(metric=metric, value=value, **ends_of(sides))
    return BoundProbability(
        difference=lost, probability=probability, possible=possible, within_bound=fits
    )


def rows_needed(
    metric: str, full: Outcome, bound: float, *, relative: bool = False, confidence: float = 0.8
) -> tuple[int, int] | None:
    """About how many rows show that nothing more than `bound` is lost, where nothing is.

    With so many rows the probability reaches `confidence`: where no row changes, and where one in
    twenty does, as many for the better as for the worse. None where no number of rows shows it.

    >>> labels = np.arange(100) % 2
    >>> rows_needed("accuracy", Outcome(labels, labels), 0.01, confidence=0.95)
    (299, 1353)
    """
    from scipy.stats import norm

    known = get_metric(metric)
    rows = len(full)
    value = known.score(full.predictions, full.labels)
    table = table_of(known, full.labels, [full.predictions] * 2, paired=True)
    before, after = (known.weighted(model, table.labels) for model in table.models)

    def lost(weights: np.ndarray) -> np.ndarray:
        return after(weights) - before(weights)

    unseen = table.unseen or most_telling(lost, table.counts)
    weights = table.counts + unseen[0 if known.higher_is_better else 1]
    # what a row that goes wrong takes from the score, were it all rows
    effect = (rows + 1) * abs(float(lost(weights[None])[0]))
    share = (bound * abs(value) if relative else bound) / effect if effect else math.nan
    if not share > 0:
        return None
    share = min(share, 1 - 1e-9)
    unchanged = math.log(1 - confidence) / math.log(1 - share)
    z = max(0.0, float(norm.ppf(confidence)))
    changed = CHANGED * (z / share) ** 2
    least = max(unchanged, known.rows)
    return math.ceil(least), math.ceil(max(least, changed))
