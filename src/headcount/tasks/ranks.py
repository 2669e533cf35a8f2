"""Spearman's and Pearson's correlation, also of many weighted samples at once."""

from __future__ import annotations

import math

import numpy as np

from headcount.statistics import Weighted
from headcount.tasks.sums import constant, ratio, sum_by


def spearman(predictions: np.ndarray, labels: np.ndarray) -> float:
    """0 where the predictions are all one: they rank nothing. Undefined where the labels are."""
    from scipy.stats import spearmanr

    if constant(labels):
        return math.nan
    if constant(predictions):
        return 0.0
    return float(spearmanr(predictions, labels).statistic)  # pyright: ignore[reportAttributeAccessIssue]


def pearson(predictions: np.ndarray, labels: np.ndarray) -> float:
    """0 where the predictions are all one, undefined where the labels are."""
    from scipy.stats import pearsonr

    if constant(labels):
        return math.nan
    if constant(predictions):
        return 0.0
    return float(pearsonr(predictions, labels).statistic)  # pyright: ignore[reportAttributeAccessIssue]


def moments(predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(row, 6) what Pearson's correlation is a function of sums of."""
    # centred first: sums of squares of uncentred numbers lose digits
    x, y = predictions - predictions.mean(), labels - labels.mean()
    return np.column_stack([np.ones(len(x)), x, y, x * x, y * y, x * y])


def pearson_sums(sums: np.ndarray) -> np.ndarray:
    """Pearson's correlation from sums (draw, 6) of moments."""
    n, x, y, xx, yy, xy = sums.T
    # what rounding leaves of a draw of equal values is no spread
    spreads = [
        np.where(own > 1e-12 * n * squares, own, 0.0)
        for own, squares in ((n * xx - x**2, xx), (n * yy - y**2, yy))
    ]
    found = ratio(n * xy - x * y, np.sqrt(spreads[0] * spreads[1]))
    return np.where(spreads[1] > 0, found, np.nan)


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
        # what rounding leaves of equal ranks is no spread
        least = 1e-12 * total[:, 0] ** 3
        x = x - (weights * x).sum(1, keepdims=True) / total
        y = y - (weights * y).sum(1, keepdims=True) / total
        above = (weights * x * y).sum(1)
        xx, yy = (weights * x * x).sum(1), (weights * y * y).sum(1)
        found = ratio(above, np.sqrt(np.where(xx > least, xx * yy, 0.0)))
        return np.where(yy > least, found, np.nan)

    return correlate


def _ranker(values: np.ndarray) -> Weighted:
    _, place = np.unique(values, return_inverse=True)
    totals = sum_by(place)

    def ranks(weights: np.ndarray) -> np.ndarray:
        own = totals(weights)
        middle = np.cumsum(own, axis=1) - own / 2
        return middle[:, place]

    return ranks
