"""How two numbers per head, or per layer, go together: correlations, intervals and a line."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from headcount.base.errors import UsageError
from headcount.base.text import line
from headcount.statistics import correlation_interval


@dataclass(frozen=True, kw_only=True)
class Correlation:
    """Pearson's and Spearman's r with 95 % intervals, and the regression line of y on x.

    All are NaN where x or y does not vary, the intervals for fewer than four points.
    """

    pearson: float
    low: float
    high: float
    p: float
    """Chance of a Pearson's r as large either way, were there no correlation."""
    spearman: float
    spearman_low: float
    spearman_high: float
    slope: float
    intercept: float
    n: int

    def __repr__(self) -> str:
        ends = f"[{self.low:.3f}, {self.high:.3f}]"
        return line(
            f"Correlation(pearson {self.pearson:.3f} {ends}, spearman {self.spearman:.3f}; "
            f"p {self.p:.2g}; n={self.n})"
        )

    def to_json(self) -> dict[str, object]:
        """A plain dict."""
        return asdict(self)


def correlate(x: ArrayLike, y: ArrayLike) -> Correlation:
    """Both correlations of x and y, and the line y = slope · x + intercept.

    Intervals by Fisher's z; Spearman's with the variance of Bonett and Wright.

    >>> round(correlate([1, 2, 3, 4], [2, 4, 6, 9]).slope, 3)
    2.3
    """
    from scipy.stats import linregress, spearmanr

    a, b = np.asarray(x, dtype=float).ravel(), np.asarray(y, dtype=float).ravel()
    if len(a) != len(b):
        raise UsageError(f"{len(a)} numbers cannot be correlated with {len(b)}.")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise UsageError("What is correlated must be numbers, not NaN or infinite.")
    if len(a) < 2 or not _varies(a) or not _varies(b):
        nothing = float("nan")
        return Correlation(
            pearson=nothing, low=nothing, high=nothing, p=nothing, spearman=nothing,
            spearman_low=nothing, spearman_high=nothing, slope=nothing, intercept=nothing,
            n=len(a),
        )  # fmt: skip
    line: Any = linregress(a, b)
    ranks = float(spearmanr(a, b).statistic)  # pyright: ignore[reportAttributeAccessIssue]
    low, high = correlation_interval(float(line.rvalue), len(a))
    rank_low, rank_high = correlation_interval(ranks, len(a), 1 + ranks**2 / 2)
    return Correlation(
        pearson=float(line.rvalue), low=low, high=high,
        p=float(line.pvalue) if len(a) > 2 else float("nan"),
        spearman=ranks, spearman_low=rank_low, spearman_high=rank_high,
        slope=float(line.slope), intercept=float(line.intercept), n=len(a),
    )  # fmt: skip


def _varies(values: np.ndarray) -> bool:
    """Whether there is more than rounding between the smallest and the largest."""
    return bool(np.ptp(values) > 1e-12 * np.abs(values).max())
