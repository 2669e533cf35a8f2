"""Formulas of metrics: on the rows themselves, and under many weightings of them at once.

The scores are those of scikit-learn and scipy. The same scores under weightings (resample, row) are
functions of weighted sums of rows, so that a thousand bootstrap resamples are one matrix product.
Where the data has one class or one value only, F1, Matthews and correlations are undefined: NaN. A
model that predicts only one class or value where the data has several scores 0, as usual.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from headcount.statistics import Weighted

Values = np.ndarray | Sequence[str]
"""Predictions or labels, one per row: class numbers, numbers, token counts, or sentences."""
V = TypeVar("V", bound=Values)
NEAR = 2**40
"""Added to a class that is wrong while the right one is among the five highest."""


def from_sums(
    rows: Callable[[V, V], np.ndarray], combine: Callable[[np.ndarray], np.ndarray]
) -> Callable[[V, V], Weighted]:
    """A metric of sums over rows: rows (row, k), combine (resample, k) -> (resample,)."""

    def weighted(predictions: V, labels: V) -> Weighted:
        table = rows(predictions, labels).astype(float)
        return lambda weights: combine(weights @ table)

    return weighted


def ratio(above: np.ndarray, below: np.ndarray, nothing: float = 0.0) -> np.ndarray:
    """The quotient, and `nothing` where it would be one by zero."""
    return np.divide(above, below, out=np.full(above.shape, nothing), where=below != 0)


def constant(values: np.ndarray) -> bool:
    """Whether all values are one, or there is but one."""
    return len(values) < 2 or bool((values == values[0]).all())


def sum_by(groups: np.ndarray) -> Weighted:
    """Sums of weights (resample, group); groups (row,) are numbers from 0 on, all of them used.

    Memory grows with rows and groups, not with their product.
    """
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(groups.max() + 1))
    return lambda weights: np.add.reduceat(weights[:, order], starts, axis=1)


def accuracy(predictions: np.ndarray, labels: np.ndarray) -> float:
    """Share of rows that are right."""
    from sklearn.metrics import accuracy_score

    return float(accuracy_score(labels, predictions))


def top5(predictions: np.ndarray, labels: np.ndarray) -> float:
    """Share of rows whose class is among the five highest; see `NEAR`."""
    return float(top_hits(predictions, labels)[:, 0].mean())


def f1(predictions: np.ndarray, labels: np.ndarray) -> float:
    """F1 of class 1, as GLUE counts it; undefined where no row is of class 1."""
    from sklearn.metrics import f1_score

    if not (labels == 1).any():
        return math.nan
    return float(f1_score(labels == 1, predictions == 1))


def matthews(predictions: np.ndarray, labels: np.ndarray) -> float:
    """Matthews' correlation of any number of classes; undefined where all labels are one."""
    from sklearn.metrics import matthews_corrcoef

    if constant(labels):
        return math.nan
    if constant(predictions):
        return 0.0  # as sklearn says too, but with a warning
    return float(matthews_corrcoef(labels, predictions))


def hits(predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(row, 2) whether it is right, and 1."""
    return np.stack([predictions == labels, np.ones(len(labels), bool)], axis=1)


def top_hits(predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(row, 2) whether it is right by `top5`, and 1."""
    right = (predictions == labels) | (predictions >= NEAR)
    return np.stack([right, np.ones(len(labels), bool)], axis=1)


def positives(predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Correct, all, and of class 1: true positives, predicted, labelled."""
    predicted, labelled = predictions == 1, labels == 1
    correct = hits(predictions, labels)
    return np.column_stack([correct, predicted & labelled, predicted, labelled])


def f1_sums(sums: np.ndarray) -> np.ndarray:
    """F1 of summed `positives`."""
    values = ratio(2 * sums[:, 2], sums[:, 3] + sums[:, 4])
    return np.where(sums[:, 4] > 0, values, np.nan)


def weighted_matthews(predictions: np.ndarray, labels: np.ndarray) -> Weighted:
    """Matthews from how often each class is predicted and labelled, without a table of pairs."""
    names, numbers = np.unique(np.concatenate([labels, predictions]), return_inverse=True)
    sides = [_counts(side, len(names)) for side in np.split(numbers, 2)]
    agree = (predictions == labels).astype(float)

    def correlate(weights: np.ndarray) -> np.ndarray:
        labelled, predicted = (count(weights) for count in sides)
        total = labelled.sum(1)
        above = (weights @ agree) * total - (labelled * predicted).sum(1)
        spread, seen = (total**2 - (side**2).sum(1) for side in (labelled, predicted))
        return np.where(spread > 0, ratio(above, np.sqrt(spread * seen)), np.nan)

    return correlate


def _counts(numbers: np.ndarray, classes: int) -> Weighted:
    """weights (resample, row) -> (resample, class) how often each class occurs."""
    present, groups = np.unique(numbers, return_inverse=True)
    totals = sum_by(groups)

    def count(weights: np.ndarray) -> np.ndarray:
        counts = np.zeros((len(weights), classes))
        counts[:, present] = totals(weights)
        return counts

    return count


def spearman(predictions: np.ndarray, labels: np.ndarray) -> float:
    """0 where the predictions are all one: they rank nothing. Undefined where the labels are."""
    return _correlation("spearmanr", predictions, labels)


def pearson(predictions: np.ndarray, labels: np.ndarray) -> float:
    """0 where the predictions are all one, undefined where the labels are."""
    return _correlation("pearsonr", predictions, labels)


def _correlation(name: str, predictions: np.ndarray, labels: np.ndarray) -> float:
    from scipy import stats

    if constant(labels):
        return math.nan
    if constant(predictions):
        return 0.0
    return float(getattr(stats, name)(predictions, labels).statistic)


def moments(predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(row, 6) what Pearson's correlation is a function of sums of."""
    # centred first: sums of squares of uncentred numbers lose digits
    x, y = predictions - predictions.mean(), labels - labels.mean()
    return np.column_stack([np.ones(len(x)), x, y, x * x, y * y, x * y])


def pearson_sums(sums: np.ndarray) -> np.ndarray:
    """Pearson's correlation from sums (resample, 6) of moments."""
    n, x, y, xx, yy, xy = sums.T
    # what rounding leaves of a resample of equal values is no spread
    spreads = [
        np.where(spread > 1e-12 * n * squares, spread, 0.0)
        for spread, squares in ((n * xx - x**2, xx), (n * yy - y**2, yy))
    ]
    values = ratio(n * xy - x * y, np.sqrt(spreads[0] * spreads[1]))
    return np.where(spreads[1] > 0, values, np.nan)


def weighted_spearman(predictions: np.ndarray, labels: np.ndarray) -> Weighted:
    """weights (resample, row) -> (resample,): Spearman where row i is weights[i] equal rows.

    A row's rank is then the number of rows below its value plus half of its value's own: two
    cumulative sums instead of a sort for every resample. 0 where the predictions are all one, not a
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
        values = ratio(above, np.sqrt(np.where(xx > least, xx * yy, 0.0)))
        return np.where(yy > least, values, np.nan)

    return correlate


def _ranker(values: np.ndarray) -> Weighted:
    _, groups = np.unique(values, return_inverse=True)
    totals = sum_by(groups)

    def ranks(weights: np.ndarray) -> np.ndarray:
        sums = totals(weights)
        middle = np.cumsum(sums, axis=1) - sums / 2
        return middle[:, groups]

    return ranks
