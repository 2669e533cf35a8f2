"""95 % intervals: of a mean, a median, a correlation, of what was drawn; and rank correlation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations

import numpy as np

Z = 1.959963984540054
"""The 97.5 % point of the normal distribution."""


def interval(
    values: Sequence[float], limits: tuple[float, float] = (-math.inf, math.inf), step: float = 0.0
) -> tuple[float, float, float]:
    """Mean and 95 % interval over seeds (Student's t); of one value the interval is not known.

    It stays inside the limits of what the values can be. A score of n rows comes in steps of about
    1 / n, so that seeds which differ by less are equal: the deviation is at least that of rounding
    to a `step` (step / √12), and equal seeds have an interval that is not of width 0.

    >>> interval([0.72, 0.88], (0.0, 1.0))
    (0.8, 0.0, 1.0)
    >>> tuple(round(each, 3) for each in interval([0.8, 0.8], (0, 1), 1 / 100))
    (0.8, 0.774, 0.826)
    """
    from scipy.stats import t

    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, math.nan, math.nan
    wide = float(t.ppf(0.975, len(values) - 1)) * standard_error(values, step)
    return mean, max(limits[0], mean - wide), min(limits[1], mean + wide)


def deviation(values: Sequence[float]) -> float:
    """The standard deviation of the population they are from; of one value it is not known."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else math.nan


def standard_error(values: Sequence[float], step: float = 0.0) -> float:
    """Of the mean of values that are rounded to a step; of one value it is not known."""
    return max(deviation(values), step / math.sqrt(12)) / math.sqrt(len(values))


def percentiles(drawn: Sequence[float] | np.ndarray) -> tuple[float, float, int]:
    """The 2.5 and 97.5 percentiles of the draws that have a value, and how many have none."""
    values = np.asarray(drawn, dtype=float)
    defined = values[~np.isnan(values)]
    if not len(defined):
        return math.nan, math.nan, len(values)
    low, high = np.quantile(defined, [0.025, 0.975])
    return float(low), float(high), len(values) - len(defined)


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of a median, from order statistics: no shape is assumed.

    As many values lie under the true median as heads fall in n tosses of a coin, so the k-th
    smallest and k-th largest enclose it with the chance that between k and n - k heads fall.

    >>> median_interval([5, 1, 4, 2, 6, 3, 7])
    (1, 7)
    """
    ordered = sorted(values)
    n = len(ordered)
    k, below = 0, 0.5**n
    while below <= 0.025 and k < n // 2:
        k += 1
        below += math.comb(n, k) * 0.5**n
    # with under 6 values even the whole range is less than 95 % sure
    edge = max(k, 1)
    return ordered[edge - 1], ordered[n - edge]


def correlation_interval(r: float, n: int, variance: float = 1.0) -> tuple[float, float]:
    """Of a correlation of n points, by Fisher's z; `variance` is that of z times n − 3."""
    if n < 4:
        return math.nan, math.nan
    if abs(r) >= 1 - 1e-15:
        return r, r
    wide = Z * math.sqrt(variance / (n - 3))
    return math.tanh(math.atanh(r) - wide), math.tanh(math.atanh(r) + wide)


def rank_correlation(x: Sequence[float], y: Sequence[float]) -> dict[str, float]:
    """Spearman's rho with its two-sided p by permutation: of all orders, or of 9,999 drawn ones.

    The usual approximation calls three runs in order certain (p = 0); of their six orders two are
    as extreme. Where one side is all the same, there is nothing to correlate.

    >>> found = rank_correlation([1, 2, 3], [0.1, 0.4, 0.5])
    >>> round(found["rho"], 6), round(found["p"], 6)
    (1.0, 0.333333)
    """
    from scipy.stats import rankdata

    if len(set(x)) < 2 or len(set(y)) < 2:
        return {"rho": math.nan, "p": math.nan, "n": len(x)}
    first, second = (rankdata(side) - (len(x) + 1) / 2 for side in (x, y))
    scale = float(np.linalg.norm(first) * np.linalg.norm(second))
    rho = float(first @ second) / scale
    if len(x) <= 7:
        orders = np.array(list(permutations(first)))
    else:
        drawn = np.random.default_rng(0).permuted(np.tile(first, (9999, 1)), axis=1)
        orders = np.vstack([first, drawn])  # the one that was seen is one of them
    extreme = np.abs(orders @ second) / scale >= abs(rho) - 1e-12
    return {"rho": rho, "p": float(extreme.mean()), "n": len(x)}
