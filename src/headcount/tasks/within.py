"""How likely a loss is within a bound: the bootstrap of a difference, held against what is allowed.

found = within("f1", full, [cut], 0.01, relative=True)
found.difference, found.chance, found.holds
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headcount.errors import UsageError
from headcount.statistics import percentiles, row_weights
from headcount.tasks.metrics import Difference, Outcome, get_metric


@dataclass(frozen=True, kw_only=True)
class Within:
    """What was lost against all heads, and how likely that is within a bound."""

    difference: Difference
    chance: float
    """Share of the draws in which the loss is within the bound; not a number without draws."""
    holds: bool
    """Whether the loss on the rows themselves is within the bound."""


def within(
    metric: str,
    before: Outcome,
    afters: Sequence[Outcome],
    bound: float,
    *,
    relative: bool = False,
    draws: int = 1000,
    seed: int = 0,
) -> Within:
    """How likely a loss is at most `bound`: a share of the score before, where it is `relative`.

    `afters` are several models of one kind (seeds) on the same rows: their mean is held against
    before, and every draw takes rows and models again. Of a metric that is better when it is lower
    the loss is a rise.
    """
    known = get_metric(metric)
    sign = 1.0 if known.higher_is_better else -1.0
    scores = [known.score(each.predictions, each.labels) for each in (before, *afters)]
    for after in afters:
        if not np.array_equal(before.labels, after.labels):
            raise UsageError(f"A difference in {metric} needs the same rows before and after.")

    def inside(first: Any, last: Any) -> Any:
        allowed = bound * np.abs(first) if relative else bound
        # rounding must not decide where nothing was lost
        return sign * (first - last) <= allowed + 1e-12 * np.maximum(1, np.abs(first))

    mean = float(np.mean(scores[1:]))
    found = {"metric": metric, "value": mean - scores[0]}
    holds = bool(inside(scores[0], mean))
    if not draws:
        nothing = Difference(**found, low=math.nan, high=math.nan)
        return Within(difference=nothing, chance=math.nan, holds=holds)
    first, *rest = (known.weighted(side.predictions, side.labels) for side in (before, *afters))
    models = np.random.default_rng((seed, 1))
    pairs: list[tuple[np.ndarray, np.ndarray]] = []
    for chunk in row_weights(len(before), draws, seed):
        each = np.stack([weighted(chunk) for weighted in rest])  # (model, draw)
        if len(rest) > 1:
            drawn = models.integers(len(rest), size=each.shape)
            each = np.take_along_axis(each, drawn, axis=0)
        pairs.append((first(chunk), each.mean(0)))
    one, other = (np.concatenate(side) for side in zip(*pairs, strict=True))
    low, high, undefined = percentiles(other - one)
    defined = ~np.isnan(other - one)
    chance = float(inside(one[defined], other[defined]).mean()) if defined.any() else math.nan
    lost = Difference(**found, low=low, high=high, draws_undefined=undefined)
    return Within(difference=lost, chance=chance, holds=holds)
