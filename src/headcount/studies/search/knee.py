"""The knee of a curve of score against heads: where one head more stops paying.

Kneedle (Satopää, Albrecht, Irwin, Raghavan: Finding a "Kneedle" in a Haystack, ICDCSW 2011), the
offline rule for one knee: heads and scores are scaled to 0 … 1, and the knee is where the score is
furthest above the straight line between the ends. In place of the paper's spline, the noise is
taken out by making the curve non-decreasing (isotonic regression). Perplexity is taken by its
logarithm: a few heads too few would otherwise be all there is to see.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

POINTS = 9
"""Numbers of heads that are scored first."""
ROUNDS = 2
"""How often the neighbourhood of the knee is looked at more closely."""


def knee(kept: Sequence[int], worth: Sequence[float]) -> tuple[int, float]:
    """(the number of heads at the knee, how far the curve is above the straight line there).

    `worth` is better when it is higher; of equal distances the fewest heads are taken.

    >>> knee([0, 10, 20, 30, 40], [0.0, 0.7, 0.9, 0.95, 1.0])[0]
    10
    """
    from sklearn.isotonic import isotonic_regression

    order = np.argsort(kept)
    x = np.asarray(kept, dtype=float)[order]
    y = isotonic_regression(np.asarray(worth, dtype=float)[order])
    width, height = x[-1] - x[0], y[-1] - y[0]
    if not width or not height > 0:
        return int(x[0]), 0.0  # all alike: no head pays
    above = (y - y[0]) / height - (x - x[0]) / width
    # rounding must not prefer more heads
    index = int(np.flatnonzero(above >= above.max() - 1e-12)[0])
    return int(x[index]), float(above[index])


def worth_of(score: float, metric: str, higher_is_better: bool) -> float:
    """A score so that higher is better, and perplexity by its logarithm."""
    if higher_is_better:
        return score
    return -math.log(score) if metric == "perplexity" and score > 0 else -score


def find_knee(counts: Sequence[int], full: int, worth: Callable[[int], float]) -> tuple[int, float]:
    """The knee over ascending numbers of heads, of which `full` is all; few of them are scored."""
    places = np.unique(np.linspace(0, len(counts) - 1, POINTS).round().astype(int))
    wanted = {counts[index] for index in places} | {full}
    for _ in range(ROUNDS):
        at, _ = knee(*_curve(wanted, worth))
        known = sorted(wanted)
        here = known.index(at)
        for one, other in ((here - 1, here), (here, here + 1)):
            if one >= 0 and other < len(known):
                between = [count for count in counts if known[one] < count < known[other]]
                wanted |= {between[len(between) // 2]} if between else set()
    return knee(*_curve(wanted, worth))


def about_points(counts: Sequence[int]) -> int:
    """About how many of these numbers `find_knee` scores."""
    return min(len(counts), POINTS + 2 * ROUNDS)


def _curve(wanted: set[int], worth: Callable[[int], float]) -> tuple[list[int], list[float]]:
    known = sorted(wanted)
    return known, [worth(kept) for kept in known]
