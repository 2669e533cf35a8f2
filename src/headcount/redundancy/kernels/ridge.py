"""Ridge cc: one minus the regularised canonical correlation of two heads.

With as many columns as samples, plain canonical correlation finds 1 between any two heads. Ridge
keeps it meaningful: K = XXᵀ of the centred matrix, λ = κ tr(K) / (n - 1), P = K (K + λI)⁻¹, and
CC = ⟨P, P'⟩ / (|P| |P'|). κ → 0 is canonical correlation, κ → ∞ the RV coefficient.

P = I - (K/λ + I)⁻¹, and a positive definite matrix is inverted by sweeping it: n rank-one updates
of its lower half. A head whose rows are all the same has K = 0: it is at 0 from another
such head and at 1 from every other.
"""

from __future__ import annotations

import numpy as np

from headcount.redundancy.kernels.compile import kernel, summing_kernel
from headcount.redundancy.kernels.finish import CONSTANT, Floats, finish
from headcount.redundancy.kernels.gram import add_products, products_of_halves
from headcount.redundancy.kernels.lanes import fma, load, splat, store
from headcount.redundancy.kernels.threads import spread


def ridge(attention: Floats, kappa: float) -> Floats:  # (head, query, key) -> (head, head)
    """1 - ridge canonical correlation of the matrices."""
    parts = spread(lambda low, high: _smoothers(attention, kappa, low, high), len(attention))
    return finish(1 - products_of_halves(np.concatenate(parts)), attention)


@kernel
def _smoothers(attention: Floats, kappa: float, low: int, high: int) -> Floats:
    """P of heads low … high, each as its lower half, scaled to length one."""
    _, tokens, keys = attention.shape
    rows, width = (tokens + 11) // 12 * 12, (keys + 7) // 8 * 8
    x = np.zeros(rows * width, np.float32)
    products = np.empty((rows, rows))
    stride = (tokens + 7) // 8 * 8
    swept = np.zeros(tokens * stride, np.float32)
    column = np.zeros(stride, np.float32)
    half = tokens * (tokens + 1) // 2
    out = np.zeros((high - low, (half + 1 + 7) // 8 * 8), np.float32)
    for head in range(low, high):
        size = _centre(attention[head], x, width)
        products[:] = 0
        add_products(x, rows, width, 0, width, products)
        trace = 0.0
        for t in range(tokens):
            trace += products[t, t]
        if trace <= CONSTANT**2 * size:
            out[head - low, half] = 1
            continue
        scale = (tokens - 1) / (kappa * trace)
        for t in range(tokens):
            for s in range(t + 1):
                swept[t * stride + s] = products[s, t] * scale
            swept[t * stride + t] += 1
        for k in range(tokens):
            _sweep(swept, tokens, stride, k, column)
        _half_of_smoother(swept, tokens, stride, out[head - low])
    return out


@summing_kernel
def _centre(a: Floats, out: Floats, width: int) -> float:
    """Centre the columns of one head into rows of `width`; Σ a²."""
    tokens, keys = a.shape
    means = np.zeros(keys)
    size = 0.0
    for t in range(tokens):
        for c in range(keys):
            means[c] += a[t, c]
            size += a[t, c] ** 2
    means /= tokens
    for t in range(tokens):
        for c in range(keys):
            out[t * width + c] = a[t, c] - means[c]
    return size


@kernel
def _sweep(a: Floats, n: int, stride: int, k: int, column: Floats) -> None:
    """Sweep the symmetric matrix `a` (its lower half) at k; after all k it is minus its inverse."""
    for j in range(k):
        column[j] = a[k * stride + j]
    for i in range(k, n):
        column[i] = a[i * stride + k]
    pivot = np.float32(1) / column[k]
    for i in range(n):
        factor = splat(-column[i] * pivot)
        for j in range(0, i + 1, 8):
            place = i * stride + j
            store(a, place, fma(factor, load(column, j), load(a, place)))
    for j in range(k):
        a[k * stride + j] = column[j] * pivot
    for i in range(k + 1, n):
        a[i * stride + k] = column[i] * pivot
    a[k * stride + k] = -pivot


@summing_kernel
def _half_of_smoother(swept: Floats, n: int, stride: int, out: Floats) -> None:
    """P = I + swept, its lower half with √2 on what stands for two entries, as a unit vector."""
    square = 0.0
    place = 0
    for t in range(n):
        for s in range(t):
            value = swept[t * stride + s] * np.float32(np.sqrt(2.0))
            out[place + s] = value
            square += value**2
        value = swept[t * stride + t] + np.float32(1)
        out[place + t] = value
        square += value**2
        place += t + 1
    scale = np.float32(1 / np.sqrt(square))
    for k in range(place):
        out[k] *= scale
