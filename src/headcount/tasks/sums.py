"""What metrics are computed from under many weightings of the rows: weighted sums of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headcount.statistics import Weighted


def from_sums(
    rows: Callable[[Any, Any], np.ndarray], combine: Callable[[np.ndarray], np.ndarray]
) -> Callable[[Any, Any], Weighted]:
    """A metric that only needs sums over rows: rows (row, k), combine (draw, k) -> (draw,)."""

    def weighted(predictions: Any, labels: Any) -> Weighted:
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
    """groups (row,) are numbers from 0 on, each at least once; gives (draw, group) sums of weights.

    Memory grows with rows and groups, not with their product.
    """
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(groups.max() + 1))
    return lambda weights: np.add.reduceat(weights[:, order], starts, axis=1)
