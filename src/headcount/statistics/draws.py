"""What rows tell about rows that nobody has seen: a Bayesian bootstrap with one unseen row a side.

A draw weights every row anew (Dirichlet weights: the posterior of what rows there are). A score
that is a function of weights has its value in a thousand draws by one matrix product. Rows alone
know nothing of what did not happen among them: where no row changed, nothing would ever be drawn.
So the lower end of an interval is that of the rows and of one more row that lowers the score, and
the upper end that of the rows and of one that raises it. Of a share this is the interval of
Clopper and Pearson, and of n rows without a change the rule of three: a loss of more than 3 / n is
excluded with 95 %. A probability comes from the same draws, so it agrees with the interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

Weighted: TypeAlias = Callable[[np.ndarray], np.ndarray]
"""weights (draw, row) -> (draw,) a score, or (draw, k) several."""

LARGEST = 4_000_000
"""So many weights are held at once."""
CANDIDATES = 1000
"""Of more rows than this, so many are tried for the most telling one."""


@dataclass(frozen=True, eq=False)
class Sides:
    """Draws (draw, k) with the unseen row that lowers a score, and with the one that raises it."""

    lower: np.ndarray
    upper: np.ndarray

    def interval(self, of: Weighted) -> tuple[float, float]:
        """The 95 % interval of what is computed from the k scores of a draw."""
        low, high = np.quantile(of(self.lower), 0.025), np.quantile(of(self.upper), 0.975)
        return float(low), float(high)


def draw_sides(
    scores: Weighted,
    counts: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    *,
    bootstrap: int = 1000,
    seed: int = 0,
) -> Sides:
    """`scores` (weights -> (draw, k)) of rows that were seen `counts` (row,) times.

    `lower` and `upper` (row,) say which row is once more on which side; they may be of rows that
    were not seen, and share the one: their sum is 1.
    """
    both: list[tuple[np.ndarray, np.ndarray]] = []
    extra = np.random.default_rng((seed, 1))
    for chunk in row_weights(counts, bootstrap, seed):
        sides = []
        for side in (lower, upper):
            weights, rows = chunk.copy(), np.flatnonzero(side)
            weights[:, rows] += extra.standard_gamma(side[rows], size=(len(chunk), len(rows)))
            sides.append(scores(weights))
        both.append((sides[0], sides[1]))
    return Sides(*(np.concatenate(side) for side in zip(*both, strict=True)))


def row_weights(counts: np.ndarray, bootstrap: int, seed: int) -> Iterator[np.ndarray]:
    """(draw, row) weights of rows seen `counts` times, in pieces of at most 4 million numbers."""
    generator = np.random.default_rng(seed)
    step = max(1, LARGEST // len(counts))
    for start in range(0, bootstrap, step):
        size = (min(step, bootstrap - start), len(counts))
        yield generator.standard_gamma(counts, size=size)


def most_telling(score: Weighted, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(row,) twice, 1 at the row that lowers a score most, and at the one that raises it most.

    Where rows are numbers, what is not among them is taken to be like the most extreme of them:
    an interval without it is too short on the side of a long tail. Each is tried once more; rows
    that were not seen (a count of 0) are the only ones tried where there are any.
    """
    rows = np.flatnonzero(counts == 0) if (counts == 0).any() else np.arange(len(counts))
    tried = rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), CANDIDATES)).astype(int))]
    step = max(1, LARGEST // len(counts))
    values = []
    for start in range(0, len(tried), step):
        chunk = tried[start : start + step]
        weights = np.tile(counts.astype(float), (len(chunk), 1))
        weights[np.arange(len(chunk)), chunk] += 1.0
        values.append(score(weights))
    scores = np.concatenate(values)
    lower, upper = np.zeros(len(counts)), np.zeros(len(counts))
    lower[tried[scores.argmin()]] = 1.0
    upper[tried[scores.argmax()]] = 1.0
    return lower, upper


def widening(rows: int) -> float:
    """By how much draws of so many numbers are too close together: Student's t for a normal.

    >>> round(widening(10), 3), round(widening(1000), 3)
    (1.211, 1.002)
    """
    from scipy.stats import norm, t

    if rows < 2:
        return math.nan
    return float(t.ppf(0.975, rows - 1) / norm.ppf(0.975) * math.sqrt((rows + 1) / rows))
