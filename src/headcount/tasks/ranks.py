"""Spearman's correlation of many weighted samples at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def weighted_spearman(
    predictions: np.ndarray, labels: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """weights (draw, row) -> (draw,): Spearman where row i stands for weights[i] equal rows.

    A row's rank is then the number of rows below its value plus half of its value's own: two
    cumulative sums instead of a sort for every draw.
    """
    ranks = [_ranker(np.asarray(values)) for values in (predictions, labels)]

    def correlate(weights: np.ndarray) -> np.ndarray:
        x, y = (rank(weights) for rank in ranks)
        total = weights.sum(1, keepdims=True)
        x = x - (weights * x).sum(1, keepdims=True) / total
        y = y - (weights * y).sum(1, keepdims=True) / total
        above = (weights * x * y).sum(1)
        below = np.sqrt((weights * x * x).sum(1) * (weights * y * y).sum(1))
        return np.divide(above, below, out=np.zeros_like(above), where=below > 0)

    return correlate


def _ranker(values: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    unique, place = np.unique(values, return_inverse=True)
    member = place  # row -> which of the distinct values it has
    order = np.argsort(member, kind="stable")
    starts = np.searchsorted(member[order], np.arange(len(unique)))

    def ranks(weights: np.ndarray) -> np.ndarray:
        own = np.add.reduceat(weights[:, order], starts, axis=1)
        middle = np.cumsum(own, axis=1) - own / 2
        return middle[:, member]

    return ranks
