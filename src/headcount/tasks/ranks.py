"""Spearman's correlation of many weighted samples at once."""

from __future__ import annotations

import numpy as np

from headcount.tasks.sums import Weighted, ratio, sum_by


def weighted_spearman(predictions: np.ndarray, labels: np.ndarray) -> Weighted:
    """weights (draw, row) -> (draw,): Spearman where row i stands for weights[i] equal rows.

    A row's rank is then the number of rows below its value plus half of its value's own: two
    cumulative sums instead of a sort for every draw. 0 where the predictions are all one, not a
    number where the labels are.
    """
    ranks = [_ranker(np.asarray(values)) for values in (predictions, labels)]

    def correlate(weights: np.ndarray) -> np.ndarray:
        x, y = (rank(weights) for rank in ranks)
        total = weights.sum(1, keepdims=True)
        x = x - (weights * x).sum(1, keepdims=True) / total
        y = y - (weights * y).sum(1, keepdims=True) / total
        above = (weights * x * y).sum(1)
        xx, yy = (weights * x * x).sum(1), (weights * y * y).sum(1)
        return np.where(yy > 0, ratio(above, np.sqrt(xx * yy)), np.nan)

    return correlate


def _ranker(values: np.ndarray) -> Weighted:
    _, place = np.unique(values, return_inverse=True)
    totals = sum_by(place)

    def ranks(weights: np.ndarray) -> np.ndarray:
        own = totals(weights)
        middle = np.cumsum(own, axis=1) - own / 2
        return middle[:, place]

    return ranks
