"""Rank correlation, with its p by permutation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations

import numpy as np


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
