"""Two groups of runs seed by seed: does one score more, and how many seeds would show it?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from headcount.statistics.intervals import interval, standard_error

ENUMERATED = 12
"""Up to so many differences all ways to flip their signs are gone through."""


def paired(
    scores: Mapping[int, float], other: Mapping[int, float], step: float = 0.0
) -> dict[str, float]:
    """Differences seed by seed: mean, 95 % interval, and p, two-sided.

    `step` is that of the scores (see `interval`): that two seeds differ alike is then no proof.
    `p` is that of the paired t-test; `p_flips` is that of `sign_flips`, which needs no normal
    distribution, but of five seeds can be no smaller than 1 / 16.

    >>> found = paired({0: 0.9, 1: 0.8, 2: 0.9}, {0: 0.5, 1: 0.6, 2: 0.4})
    >>> round(found["mean"], 4), round(found["p"], 3), found["p_flips"]
    (0.3667, 0.053, 0.25)
    """
    from scipy.stats import t

    differences = differences_of(scores, other)
    many, p_flips = len(differences), sign_flips(differences)
    if not differences:
        nothing = dict.fromkeys(("mean", "low", "high", "p", "p_flips"), math.nan)
        return {**nothing, "seeds": 0}
    mean, low, high = interval(differences, step=step)
    error = standard_error(differences, step)
    if error == 0:
        p = 1.0 if mean == 0 else 0.0
    else:
        p = float(2 * t.sf(abs(mean) / error, many - 1)) if many > 1 else math.nan
    return {"mean": mean, "low": low, "high": high, "p": p, "p_flips": p_flips, "seeds": many}


def differences_of(scores: Mapping[int, float], other: Mapping[int, float]) -> list[float]:
    """Own minus other, for every seed that both have."""
    return [scores[seed] - other[seed] for seed in scores if seed in other]


def sign_flips(differences: Sequence[float], *, bootstrap: int = 9999, seed: int = 0) -> float:
    """How often a mean as far from 0 comes about when the sign of each difference is a coin's.

    All 2^n ways are gone through up to n = 12; of more, so many are drawn, and the one that was
    seen is counted among them. Two-sided.

    >>> sign_flips([0.4, 0.2, 0.5]), sign_flips([0.1] * 6)
    (0.25, 0.03125)
    """
    values = np.asarray(differences, dtype=float)
    if not len(values) or np.isnan(values).any():
        return math.nan
    n = len(values)
    if n <= ENUMERATED:
        bits = np.arange(2**n)[:, None] >> np.arange(n) & 1
    else:
        drawn = np.random.default_rng(seed).integers(2, size=(bootstrap, n))
        bits = np.vstack([np.ones((1, n), int), drawn])
    sums = (2.0 * bits - 1) @ values
    rounding = 1e-12 * np.abs(values).sum()
    return float((np.abs(sums) >= abs(values.sum()) - rounding).mean())


def seeds_needed(
    mean: float, deviation: float, *, alpha: float = 0.05, power: float = 0.8
) -> int | None:
    """The fewest seeds with which a paired t-test sees such a difference so often.

    `mean` and `deviation` are those of the differences seed by seed, taken to be the true ones;
    the test is two-sided at `alpha`. None where there is nothing to see, or it is not known.

    >>> seeds_needed(0.5, 1.0), seeds_needed(0.0, 1.0)
    (34, None)
    """
    if math.isnan(mean) or math.isnan(deviation) or mean == 0:
        return None
    if deviation == 0:
        return 2
    effect = abs(mean) / deviation
    low, high = 1, 2
    while power_of(effect, high, alpha) < power:
        low, high = high, 2 * high
        if high > 2**40:  # a difference that is rounding
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power_of(effect, middle, alpha) >= power else (middle, high)
    return high


def power_of(effect: float, seeds: int, alpha: float = 0.05) -> float:
    """How often a two-sided paired t-test sees an effect: a mean in standard deviations."""
    from scipy.stats import nct, t

    edge, shift = float(t.isf(alpha / 2, seeds - 1)), effect * math.sqrt(seeds)
    # the far side of a large shift is nothing, and beyond what scipy computes
    far = float(nct.cdf(-edge, seeds - 1, shift)) if shift < 5 else 0.0
    return float(nct.sf(edge, seeds - 1, shift)) + far
