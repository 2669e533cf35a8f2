"""Means with intervals, paired differences, and rank correlation: one place for all tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import permutations

import numpy as np


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean and 95 % interval (Student's t); of one value the interval is not known."""
    from scipy.stats import t

    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, math.nan, math.nan
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    wide = float(t.ppf(0.975, len(values) - 1)) * error
    return mean, mean - wide, mean + wide


def paired(own: Mapping[int, float], other: Mapping[int, float]) -> dict[str, float]:
    """Differences seed by seed: mean, 95 % interval, and p of the paired t-test, two-sided.

    >>> found = paired({0: 0.9, 1: 0.8, 2: 0.9}, {0: 0.5, 1: 0.6, 2: 0.4})
    >>> round(found["mean"], 4), round(found["p"], 3)
    (0.3667, 0.053)
    """
    from scipy.stats import t

    differences = [own[seed] - other[seed] for seed in own if seed in other]
    if not differences:
        return {"mean": math.nan, "low": math.nan, "high": math.nan, "p": math.nan, "seeds": 0}
    mean, low, high = interval(differences)
    many = len(differences)
    error = float(np.std(differences, ddof=1)) / math.sqrt(many) if many > 1 else math.nan
    if error == 0:
        p = 1.0 if mean == 0 else 0.0
    else:
        p = float(2 * t.sf(abs(mean) / error, many - 1)) if many > 1 else math.nan
    return {"mean": mean, "low": low, "high": high, "p": p, "seeds": many}


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
