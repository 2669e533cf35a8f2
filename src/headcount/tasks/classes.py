"""Scores of classes: accuracy, F1 and Matthews' correlation, plain and under weightings.

Where the data has one class only, F1 and Matthews have nothing to tell: they are undefined, not a
number. A model that says one class only while the data has several scores 0, as usual.
"""

from __future__ import annotations

import math

import numpy as np

from headcount.statistics import Weighted
from headcount.tasks.sums import constant, ratio, sum_by


def accuracy(predictions: np.ndarray, labels: np.ndarray) -> float:
    """Share of rows that are right."""
    from sklearn.metrics import accuracy_score

    return float(accuracy_score(labels, predictions))


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


def positives(predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Correct, all, and of class 1: true positives, predicted, labelled."""
    said, right = predictions == 1, labels == 1
    return np.column_stack([hits(predictions, labels), said & right, said, right])


def f1_sums(sums: np.ndarray) -> np.ndarray:
    """F1 of summed `positives`."""
    found = ratio(2 * sums[:, 2], sums[:, 3] + sums[:, 4])
    return np.where(sums[:, 4] > 0, found, np.nan)


def weighted_matthews(predictions: np.ndarray, labels: np.ndarray) -> Weighted:
    """Matthews from how often each class is said and right, without the table of all pairs."""
    names, places = np.unique(np.concatenate([labels, predictions]), return_inverse=True)
    sides = [_counts(side, len(names)) for side in np.split(places, 2)]
    agree = (predictions == labels).astype(float)

    def correlate(weights: np.ndarray) -> np.ndarray:
        right, said = (count(weights) for count in sides)
        total = right.sum(1)
        above = (weights @ agree) * total - (right * said).sum(1)
        spread, seen = (total**2 - (side**2).sum(1) for side in (right, said))
        return np.where(spread > 0, ratio(above, np.sqrt(spread * seen)), np.nan)

    return correlate


def _counts(places: np.ndarray, classes: int) -> Weighted:
    """weights (draw, row) -> (draw, class) how often each class occurs."""
    there, groups = np.unique(places, return_inverse=True)
    totals = sum_by(groups)

    def count(weights: np.ndarray) -> np.ndarray:
        counts = np.zeros((len(weights), classes))
        counts[:, there] = totals(weights)
        return counts

    return count
