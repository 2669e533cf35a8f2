"""The bootstrap: rows, seeds, or both drawn again with replacement, as weights.

A draw of rows is a vector of how often each row was drawn. A score that can be written as a
function of such weights gives its value in a thousand draws by one matrix product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

Weighted: TypeAlias = Callable[[np.ndarray], np.ndarray]
"""weights (draw, row) -> (draw,) a score, or (draw, k) what it is made of."""

LARGEST = 4_000_000
"""So many weights are held at once."""


def bootstrap(
    scores: Sequence[Weighted | float],
    rows: int,
    *,
    draws: int = 1000,
    seed: int = 0,
    same_rows: bool = True,
) -> np.ndarray:
    """(draw,) the mean over seeds of a score, with seeds and rows drawn anew.

    `scores` has one for every seed: a function of weights of its `rows` rows, or a plain number
    where its rows are not known. Seeds are drawn, and rows for those that were drawn: once for all
    of them, as all were scored on the same rows and what makes a row hard is no chance of the
    seed; or, without `same_rows`, for each drawn seed its own. One seed: only rows are drawn.
    Numbers: only seeds are. One number has nothing to draw, so nothing is known (NaN).
    """
    plain = np.array([each for each in scores if not callable(each)], dtype=float)
    weighted = [each for each in scores if callable(each)]
    if len(plain) and weighted:
        raise TypeError("Rows are known of all seeds or of none.")
    many = len(scores)
    if len(plain):
        return plain[_seeds(many, draws, seed)].mean(1) if many > 1 else np.full(draws, np.nan)
    if many == 1:
        return _scored(weighted[0], rows, draws, seed)
    chosen = _seeds(many, draws, seed)
    values = np.empty(chosen.shape)
    if same_rows:
        chunks = row_weights(rows, draws, seed)
        table = np.concatenate([np.stack([own(chunk) for own in weighted]) for chunk in chunks], 1)
        values = table[chosen, np.arange(draws)[:, None]]
    else:
        for place, own in enumerate(weighted):
            here = chosen == place
            if here.any():
                values[here] = _scored(own, rows, int(here.sum()), [seed, place])
    return values.mean(1)


def row_weights(rows: int, draws: int, seed: int | Sequence[int]) -> Iterator[np.ndarray]:
    """(draw, row) how often each row was drawn, in pieces of at most 4 million numbers."""
    generator = np.random.default_rng(seed)
    step = max(1, LARGEST // rows)
    for start in range(0, draws, step):
        count = min(step, draws - start)
        drawn = generator.integers(rows, size=(count, rows))
        drawn += np.arange(count)[:, None] * rows
        yield np.bincount(drawn.ravel(), minlength=count * rows).reshape(count, rows).astype(float)


def _scored(score: Weighted, rows: int, draws: int, seed: int | Sequence[int]) -> np.ndarray:
    return np.concatenate([score(chunk) for chunk in row_weights(rows, draws, seed)])


def _seeds(many: int, draws: int, seed: int) -> np.ndarray:
    """(draw, place) which seeds were drawn; by other random numbers than rows are."""
    return np.random.default_rng([seed, many]).integers(many, size=(draws, many))
