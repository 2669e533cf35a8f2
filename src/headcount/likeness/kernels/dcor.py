"""dcor: one minus the distance correlation of two heads, their rows as samples.

Euclidean distances between a head's rows, centred over rows and columns, scaled to length one, are
a vector b; dCor² of two heads is b·b'. A symmetric matrix is kept as its lower half, with √2 on
what stands for two entries.

A head whose rows are all the same has no distances: it is at 0 from another such head (also for
single-token inputs, where every head is one) and at 1 from every other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headcount.likeness.kernels.compile import kernel, summing_kernel
from headcount.likeness.kernels.finish import CONSTANT, Floats, finish
from headcount.likeness.kernels.gram import empty_halves, products_of_halves
from headcount.likeness.kernels.lanes import fma, load, splat, total
from headcount.likeness.kernels.threads import spread

_ZERO = np.float32(0)
_DOUBTFUL = 2e-4


def dcor(attention: Floats) -> Floats:  # (head, query, key) -> (head, head)
    """1 - distance correlation of the matrices, rows as samples."""
    halves = empty_halves(attention)
    spread(lambda low, high: _centred(attention, low, high, halves), len(attention))
    squares = products_of_halves(halves, len(attention))
    _make_exact(squares, attention, halves)
    return finish(1 - np.sqrt(np.maximum(squares, 0)), attention)


def _make_exact(squares: NDArray[np.float64], attention: Floats, halves: Floats) -> None:
    """Compute the smallest b·b' again in double precision: their roots would show the rounding."""
    heads, tokens, _ = attention.shape
    varies = halves[:heads, tokens * (tokens + 1) // 2] == 0
    pairs = np.argwhere(np.triu((squares < _DOUBTFUL) & varies & varies[:, None], 1))
    exact: dict[int, NDArray[np.float64]] = {}
    for head in np.unique(pairs):
        rows = attention[head].astype(np.float64)
        apart = np.stack([np.linalg.norm(rows - row, axis=1) for row in rows])
        apart -= apart.mean(0)
        apart -= apart.mean(1, keepdims=True)
        exact[int(head)] = apart.ravel() / np.linalg.norm(apart)
    for i, j in pairs.tolist():
        squares[i, j] = exact[i] @ exact[j]


@summing_kernel
def _centred(attention: Floats, low: int, high: int, out: Floats) -> None:
    """The unit vectors b of heads low … high."""
    _, tokens, keys = attention.shape
    width = (keys + 7) // 8 * 8
    rows = np.zeros(tokens * width, np.float32)
    apart = np.zeros((tokens, tokens))
    half = tokens * (tokens + 1) // 2
    for head in range(low, high):
        size = 0.0
        for t in range(tokens):
            for c in range(keys):
                rows[t * width + c] = attention[head, t, c]
                size += attention[head, t, c] ** 2
        _euclidean(rows, tokens, width, apart)
        norm = _centre(apart)
        if norm <= CONSTANT * np.sqrt(size):
            out[head, half] = 1
            continue
        scale = 1 / norm
        at = 0
        for t in range(tokens):
            for s in range(t):
                out[head, at + s] = apart[t, s] * scale * np.sqrt(2.0)
            out[head, at + t] = apart[t, t] * scale
            at += t + 1


@kernel
def _euclidean(rows: Floats, tokens: int, width: int, out: Floats) -> None:
    """Distances between rows below the diagonal, by differences: |a|² + |b|² - 2ab loses digits."""
    for t in range(tokens):
        out[t, t] = 0
        a = t * width
        for s in range(0, t - 3, 4):
            b0, b1, b2, b3 = s * width, (s + 1) * width, (s + 2) * width, (s + 3) * width
            s0, s1, s2, s3 = splat(_ZERO), splat(_ZERO), splat(_ZERO), splat(_ZERO)
            for c in range(0, width, 8):
                x = load(rows, a + c)
                y0, y1 = x - load(rows, b0 + c), x - load(rows, b1 + c)
                y2, y3 = x - load(rows, b2 + c), x - load(rows, b3 + c)
                s0, s1, s2, s3 = fma(y0, y0, s0), fma(y1, y1, s1), fma(y2, y2, s2), fma(y3, y3, s3)
            out[t, s] = np.sqrt(total(s0))
            out[t, s + 1] = np.sqrt(total(s1))
            out[t, s + 2] = np.sqrt(total(s2))
            out[t, s + 3] = np.sqrt(total(s3))
        for s in range(t // 4 * 4, t):
            s0 = splat(_ZERO)
            for c in range(0, width, 8):
                y0 = load(rows, a + c) - load(rows, s * width + c)
                s0 = fma(y0, y0, s0)
            out[t, s] = np.sqrt(total(s0))


@summing_kernel
def _centre(apart: Floats) -> float:
    """Centre the lower half of a symmetric matrix over rows and columns; its Frobenius norm."""
    n = apart.shape[0]
    means = np.zeros(n)
    for t in range(n):
        for s in range(t):
            means[t] += apart[t, s]
            means[s] += apart[t, s]
    means /= n
    overall = means.mean()
    square = 0.0
    for t in range(n):
        for s in range(t + 1):
            apart[t, s] += overall - means[t] - means[s]
            square += apart[t, s] ** 2 * (1.0 if s == t else 2.0)
    return np.sqrt(square)
