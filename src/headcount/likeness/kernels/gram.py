"""cos, corr, bc and pq: each is one product BBᵀ of rows made ready, summed over the tokens.

cos   1 - p·q / (|p| |q|)
corr  (1 - r) / 2, r the correlation of p and q over the keys. A constant row has no correlation:
      r = 1 with another constant row, r = 0 with any other
bc    1 - Σ √(p q), one minus the Bhattacharyya coefficient
pq    1 - Σ p q, which On Attention Redundancy prints for bc (appendix); no distance, since it is
      not 0 between two heads that are alike
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headcount.likeness.kernels.compile import kernel, summing_kernel
from headcount.likeness.kernels.finish import CONSTANT, Floats, finish
from headcount.likeness.kernels.lanes import Lanes, fma, load, splat, total
from headcount.likeness.kernels.threads import spread

_COS, _CORR, _BC, _PQ = 0, 1, 2, 3
_CACHED = 80_000  # floats of a slice of B, small enough for a core's own cache
_ZERO = np.float32(0)


def cos(attention: Floats) -> Floats:  # (head, query, key) -> (head, head)
    """1 - cosine of the rows, mean over tokens."""
    return finish(1 - _mean_product(attention, _COS), attention)


def corr(attention: Floats) -> Floats:
    """(1 - Pearson correlation of the rows) / 2, mean over tokens."""
    return finish((1 - _mean_product(attention, _CORR)) / 2, attention)


def bc(attention: Floats) -> Floats:
    """1 - Bhattacharyya coefficient of the rows, mean over tokens."""
    return finish(1 - _mean_product(attention, _BC), attention)


def pq(attention: Floats) -> Floats:
    """1 - product of the rows, mean over tokens."""
    return finish(1 - _mean_product(attention, _PQ), attention)


def _mean_product(attention: Floats, kind: int) -> NDArray[np.float64]:
    heads, tokens, _ = attention.shape
    parts = spread(lambda low, high: _products(attention, kind, low, high), tokens)
    return np.sum(parts, axis=0)[:heads, :heads] / tokens


def empty_halves(attention: Floats) -> Floats:
    """Room for half a symmetric (query, query) matrix of each head, one number more, and zeros."""
    heads, tokens, _ = attention.shape
    width = tokens * (tokens + 1) // 2 + 1
    return np.zeros((-(-heads // 12) * 12, -(-width // 8) * 8), np.float32)


def products_of_halves(halves: Floats, heads: int) -> NDArray[np.float64]:
    """b·b' of every pair of rows, above the diagonal."""
    rows, width = halves.shape
    flat = halves.ravel()
    parts = spread(lambda low, high: _sliced(flat, rows, width, low * 8, high * 8), width // 8)
    return np.sum(parts, axis=0)[:heads, :heads]


@kernel
def _sliced(flat: Floats, rows: int, width: int, low: int, high: int) -> Floats:
    """The products over columns low … high, a cached slice at a time."""
    out = np.zeros((rows, rows))
    step = max(8, _CACHED // rows // 8 * 8)
    for first in range(low, high, step):
        add_products(flat, rows, width, first, min(first + step, high), out)
    return out


@kernel
def add_products(b: Floats, rows: int, width: int, low: int, high: int, out: Floats) -> None:
    """out[i, j] += Σ b[i, low:high] · b[j, low:high] for j ≥ i; `b` is flat, (rows, width).

    Rows come in twelves, low and high in eights. Tiles of 3 x 4 sums stay in registers.
    """
    zero = splat(_ZERO)
    for i in range(0, rows, 3):
        for j in range(i // 4 * 4, rows, 4):
            a0, a1, a2, a3 = i * width, (i + 1) * width, (i + 2) * width, j * width
            s00, s01, s02, s03 = zero, zero, zero, zero
            s10, s11, s12, s13 = zero, zero, zero, zero
            s20, s21, s22, s23 = zero, zero, zero, zero
            for k in range(low, high, 8):
                x, y, z = load(b, a0 + k), load(b, a1 + k), load(b, a2 + k)
                w = load(b, a3 + k)
                s00, s10, s20 = fma(x, w, s00), fma(y, w, s10), fma(z, w, s20)
                w = load(b, a3 + width + k)
                s01, s11, s21 = fma(x, w, s01), fma(y, w, s11), fma(z, w, s21)
                w = load(b, a3 + 2 * width + k)
                s02, s12, s22 = fma(x, w, s02), fma(y, w, s12), fma(z, w, s22)
                w = load(b, a3 + 3 * width + k)
                s03, s13, s23 = fma(x, w, s03), fma(y, w, s13), fma(z, w, s23)
            _add4(out, i, j, s00, s01, s02, s03)
            _add4(out, i + 1, j, s10, s11, s12, s13)
            _add4(out, i + 2, j, s20, s21, s22, s23)


@kernel
def _add4(out: Floats, i: int, j: int, a: Lanes, b: Lanes, c: Lanes, d: Lanes) -> None:
    out[i, j] += total(a)
    out[i, j + 1] += total(b)
    out[i, j + 2] += total(c)
    out[i, j + 3] += total(d)


@kernel
def _products(attention: Floats, kind: int, low: int, high: int) -> Floats:
    """Σ over tokens low … high of BBᵀ, above the diagonal."""
    heads, _, keys = attention.shape
    rows = -(-heads // 12) * 12
    out = np.zeros((rows, rows))
    row = keys + 1  # one more column: 1 marks a constant row
    step = max(1, _CACHED // (rows * row))
    width = -(-step * row // 8) * 8
    b = np.zeros(rows * width, np.float32)
    for first in range(low, high, step):
        last = min(first + step, high)
        for head in range(heads):
            at = head * width
            for t in range(first, last):
                _prepare(attention[head, t], kind, b[at : at + row])
                at += row
        if last - first < step:
            used = (last - first) * row
            for head in range(heads):
                b[head * width + used : (head + 1) * width] = 0
        add_products(b, rows, width, 0, -(-(last - first) * row // 8) * 8, out)
    return out


@summing_kernel
def _prepare(p: Floats, kind: int, out: Floats) -> None:
    """One row p as a unit vector, with a last value of 1 where it is constant and kind is corr."""
    keys = p.shape[0]
    out[keys] = 0
    if kind == _BC:
        for c in range(keys):
            out[c] = np.sqrt(p[c])
        return
    if kind == _PQ:
        out[:keys] = p
        return
    mean = 0.0
    if kind == _CORR:
        for c in range(keys):
            mean += p[c]
        mean /= keys
    square = 0.0
    for c in range(keys):
        square += (p[c] - mean) ** 2
    if kind == _CORR and square <= (CONSTANT * mean) ** 2 * keys:
        out[:keys] = 0
        out[keys] = 1
        return
    scale = 1 / np.sqrt(square)
    for c in range(keys):
        out[c] = (p[c] - mean) * scale
