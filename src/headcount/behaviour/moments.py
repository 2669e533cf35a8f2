"""Means and standard errors over inputs, of which some may be without a value."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Moments:
    """Welford's mean and sum of squared deviations, for any number of values at once.

    What is NaN does not count: every value has its own number of inputs.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.count: Array = np.zeros(shape)
        self._mean: Array = np.zeros(shape)
        self._squares: Array = np.zeros(shape)

    def add(self, values: Array) -> None:  # (input, ...)
        """Take in more inputs."""
        there = ~np.isnan(values)
        count = there.sum(0)
        total = self.count + count
        known = np.where(there, values, 0.0)
        mean = known.sum(0) / np.maximum(count, 1)
        squares = np.where(there, (values - mean) ** 2, 0.0).sum(0)
        apart = mean - self._mean
        share = count / np.maximum(total, 1)
        self._squares += squares + apart**2 * self.count * share
        self._mean += apart * share
        self.count = total

    @property
    def mean(self) -> Array:
        """NaN where no input had a value."""
        return np.where(self.count > 0, self._mean, np.nan)

    @property
    def stderr(self) -> Array:
        """NaN below two inputs."""
        spread = np.sqrt(self._squares / np.maximum(self.count - 1, 1) / np.maximum(self.count, 1))
        return np.where(self.count > 1, spread, np.nan)
