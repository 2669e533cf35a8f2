"""How predictions are scored, with a bootstrap interval beside every score.

The scores themselves come from scikit-learn, scipy and sacrebleu. For the interval, rows are drawn
again with replacement; a draw is a vector of how often each row was drawn, and every metric is
written as a function of such weights, so that a thousand draws are one matrix product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from headcount.errors import UsageError, did_you_mean, need_extra


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a model said beside what was right, one row per example.

    Classification: class numbers. Regression: numbers. Translation: sentences. Language modelling:
    predictions are (row, 2) correct tokens and summed negative log-likelihood, labels the number
    of tokens that were asked for.
    """

    predictions: np.ndarray | Sequence[str]
    labels: np.ndarray | Sequence[str]

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, kw_only=True)
class Score:
    """One metric's value with its 95 % interval."""

    metric: str
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.metric} {self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A score, and the same score under many weightings of the rows."""

    name: str
    score: Callable[[Outcome], float]
    resampled: Callable[[Outcome, Callable[[np.ndarray], np.ndarray], Iterator[np.ndarray]], list]
    higher_is_better: bool = True


def _sums(statistics: Callable[[Outcome], np.ndarray], combine: Callable[[np.ndarray], np.ndarray]):
    """A metric that needs only sums over rows: statistics (row, k), combine (..., k) -> (...)."""

    def resampled(outcome: Outcome, draws: Iterator[np.ndarray]) -> list[np.ndarray]:
        rows = statistics(outcome).astype(np.float64)
        return [combine(weights @ rows) for weights in draws]

    return resampled
