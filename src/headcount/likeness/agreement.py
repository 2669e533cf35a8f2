"""Whether two redundancy matrices agree: of two distances, phases or tasks.

On Attention Redundancy (NAACL 2021), §5.2 (distances), §6 (phases), §7 (tasks).

    agree(pretrained, finetuned).pearson
    agreements({"cola": a, "sst2": b, "random": c})["cola", "random"].p_value

The entries of a matrix are not independent (a head is in H - 1 of them), so chance is measured by
permuting heads (Mantel) and the interval by drawing heads anew, never entry by entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from headcount.base.errors import UsageError
from headcount.statistics import percentiles

Matrix: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """How far two redundancy matrices agree, over the pairs of different heads."""

    pearson: float
    low: float
    """Lower end of Pearson's 95 % interval, from heads drawn anew."""
    high: float
    spearman: float
    normalised: float
    """(1 + pearson) / 2: a correlation as the paper shows it, within [0, 1]; 0.5 is none."""
    p_value: float
    """Mantel: the share of permutations of heads that correlate at least as well."""
    mean_difference: float
    """Mean absolute difference of the distances."""
    heads: int


def agree(
    a: ArrayLike,  # (head, head)
    b: ArrayLike,
    *,
    permutations: int = 999,
    resamples: int = 500,
    seed: int = 0,
) -> Agreement:
    """Every measure of agreement between two redundancy matrices of the same heads."""
    x, y = same_heads(a, b)
    pearson, p_value = mantel(x, y, permutations=permutations, seed=seed)
    low, high = head_interval(x, y, resamples=resamples, seed=seed)
    return Agreement(
        pearson=pearson,
        low=low,
        high=high,
        spearman=correlation(_ranks(x), _ranks(y)),
        normalised=(1 + pearson) / 2,
        p_value=p_value,
        mean_difference=float(np.abs(pairs(x) - pairs(y)).mean()),
        heads=len(x),
    )


def agreements(
    matrices: Mapping[str, ArrayLike],
    *,
    permutations: int = 999,
    resamples: int = 500,
    seed: int = 0,
) -> dict[tuple[str, str], Agreement]:
    """`agree` for every two of several matrices, in their order."""
    test = partial(agree, permutations=permutations, resamples=resamples, seed=seed)
    return {
        (one, other): test(matrices[one], matrices[other])
        for one, other in combinations(matrices, 2)
    }


def mantel(
    a: ArrayLike, b: ArrayLike, *, permutations: int = 999, seed: int = 0
) -> tuple[float, float]:
    """Pearson's r over pairs of heads, and the chance of one as large when heads are permuted."""
    x, y = same_heads(a, b)
    if permutations < 1:
        raise UsageError(f"A permutation test takes at least one permutation, not {permutations}.")
    rows, columns = np.triu_indices(len(x), 1)
    weights = y[rows, columns] - y[rows, columns].mean()
    values = x - pairs(x).mean()
    scale = np.linalg.norm(weights) * np.linalg.norm(values[rows, columns])
    _refuse_flat(scale)
    pearson = float(np.clip(values[rows, columns] @ weights / scale, -1, 1))
    rng = np.random.default_rng(seed)
    as_large = 0
    for start in range(0, permutations, 64):
        count = min(64, permutations - start)
        order = rng.permuted(np.tile(np.arange(len(x)), (count, 1)), axis=1)
        permuted = values[order[:, rows], order[:, columns]] @ weights / scale
        as_large += int((permuted >= pearson - 1e-12).sum())
    return pearson, (1 + as_large) / (1 + permutations)


def head_interval(
    a: ArrayLike, b: ArrayLike, *, resamples: int = 500, seed: int = 0
) -> tuple[float, float]:
    """95 % interval of Pearson's r, from heads drawn with replacement; no head meets itself."""
    x, y = same_heads(a, b)
    rows, columns = np.triu_indices(len(x), 1)
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(resamples):
        heads = rng.integers(0, len(x), len(x))
        i, j = heads[rows], heads[columns]
        i, j = i[i != j], j[i != j]
        if len(i) > 2 and np.ptp(x[i, j]) and np.ptp(y[i, j]):
            drawn.append(correlation(x[i, j], y[i, j]))
    low, high, _ = percentiles(drawn)
    return (low, high) if drawn else (-1.0, 1.0)


def correlation(x: Matrix, y: Matrix) -> float:
    """Pearson's r of two flat arrays."""
    x, y = x - x.mean(), y - y.mean()
    scale = np.linalg.norm(x) * np.linalg.norm(y)
    _refuse_flat(scale)
    return float(np.clip(x @ y / scale, -1, 1))


def pairs(matrix: Matrix) -> Matrix:
    """The distances of every two different heads, once each."""
    return matrix[np.triu_indices(len(matrix), 1)]


def as_matrix(values: ArrayLike) -> Matrix:
    """A redundancy matrix as float64; refuse what is none."""
    matrix = np.asarray(values, np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise UsageError(f"A redundancy matrix is heads x heads, not of shape {matrix.shape}.")
    if not np.isfinite(matrix).all():
        raise UsageError("The redundancy matrix holds values that are not finite.")
    if not np.allclose(matrix, matrix.T, atol=1e-6) or np.abs(matrix.diagonal()).max(initial=0) > 0:
        raise UsageError("A redundancy matrix is symmetric with zeros on its diagonal.")
    return matrix


def same_heads(a: ArrayLike, b: ArrayLike) -> tuple[Matrix, Matrix]:
    """Two redundancy matrices of as many heads, at least three."""
    x, y = as_matrix(a), as_matrix(b)
    if x.shape != y.shape:
        raise UsageError(f"Matrices of {len(x)} and {len(y)} heads cannot be compared.")
    if len(x) < 3:
        raise UsageError(f"To compare two matrices takes at least three heads, not {len(x)}.")
    return x, y


def _ranks(matrix: Matrix) -> Matrix:
    return rankdata(pairs(matrix))


def _refuse_flat(scale: np.floating) -> None:
    if not scale > 1e-12:
        raise UsageError("All pairs of heads are at the same distance: nothing to correlate.")
