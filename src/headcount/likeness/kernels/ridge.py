"""Ridge cc: one minus the regularised canonical correlation of two heads.

With as many columns as samples, plain canonical correlation finds 1 between any two heads. Ridge
keeps it meaningful: K = XXᵀ of the centred matrix, λ = κ tr(K) / (n - 1), P = K (K + λI)⁻¹, and
CC = ⟨P, P'⟩ / (|P| |P'|). κ → 0 is canonical correlation, κ → ∞ the RV coefficient.

P = I - (K/λ + I)⁻¹, and a positive definite matrix is inverted by sweeping it: n rank-one updates
of its upper half, two at a time. A head whose rows are all the same has K = 0: it is at 0 from
another such head and at 1 from every other.
"""

from __future__ import annotations

import numpy as np

from headcount.likeness.kernels.compile import kernel, summing_kernel
from headcount.likeness.kernels.finish import CONSTANT, Floats, finish
from headcount.likeness.kernels.gram import add_products, empty_halves, products_of_halves
from headcount.likeness.kernels.lanes import load, splat, store, without
from headcount.likeness.kernels.threads import spread


def ridge(attention: Floats, kappa: float) -> Floats:  # (head, query, key) -> (head, head)
    """1 - ridge canonical correlation of the matrices."""
    halves = empty_halves(attention)
    spread(lambda low, high: _smoothers(attention, kappa, low, high, halves), len(attention))
    return finish(1 - products_of_halves(halves, len(attention)), attention)


@kernel
def _smoothers(attention: Floats, kappa: float, low: int, high: int, out: Floats) -> None:
    """P of heads low … high, each as its upper half, scaled to length one."""
    _, tokens, keys = attention.shape
    rows, width = (tokens + 11) // 12 * 12, (keys + 7) // 8 * 8
    x = np.zeros(rows * width, np.float32)
    products = np.empty((rows, rows))
    stride = (tokens + 7) // 8 * 8
    swept = np.zeros(tokens * stride, np.float32)
    one, two = np.zeros(stride, np.float32), np.zeros(stride, np.float32)
    half = tokens * (tokens + 1) // 2
    for head in range(low, high):
        size = _centre(attention[head], x, width)
        products[:] = 0
        add_products(x, rows, width, 0, width, products)
        trace = 0.0
        for t in range(tokens):
            trace += products[t, t]
        if trace <= CONSTANT**2 * size:
            out[head, half] = 1
            continue
        scale = (tokens - 1) / (kappa * trace)
        for t in range(tokens):
            for s in range(t, tokens):
                swept[t * stride + s] = products[t, s] * scale
            swept[t * stride + t] += 1
        for k in range(0, tokens - 1, 2):
            _sweep_two(swept, tokens, stride, k, one, two)
        if tokens % 2:
            _sweep_last(swept, tokens, stride, one)
        _half_of_smoother(swept, tokens, stride, out[head])


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
def _sweep_two(a: Floats, n: int, stride: int, k: int, one: Floats, two: Floats) -> None:
    """Sweep the symmetric matrix `a` (its upper half) at k and k + 1.

    Swept at every k, a matrix becomes minus its inverse. `one` is row k, `two` is row k + 1 as the
    first sweep leaves it.
    """
    _row(a, n, stride, k, one)
    _row(a, n, stride, k + 1, two)
    first = np.float32(1) / one[k]
    link = one[k + 1] * first
    for j in range(0, n, 8):
        store(two, j, without(load(two, j), splat(link), load(one, j)))
    second = np.float32(1) / two[k + 1]
    for i in range(n):
        f, g = splat(one[i] * first), splat(two[i] * second)
        for j in range(i // 8 * 8, n, 8):
            at = i * stride + j
            x = without(load(a, at), f, load(one, j))
            store(a, at, without(x, g, load(two, j)))
    for i in range(n):
        upper = i * stride + k if i < k else k * stride + i
        a[upper] = one[i] * first - two[i] * second * link
        upper = i * stride + k + 1 if i < k + 1 else (k + 1) * stride + i
        a[upper] = two[i] * second
    a[k * stride + k] = -first - link * second * link
    a[k * stride + k + 1] = link * second
    a[(k + 1) * stride + k + 1] = -second


@kernel
def _sweep_last(a: Floats, n: int, stride: int, one: Floats) -> None:
    """Sweep at n - 1."""
    _row(a, n, stride, n - 1, one)
    first = np.float32(1) / one[n - 1]
    for i in range(n):
        factor = splat(one[i] * first)
        for j in range(i // 8 * 8, n, 8):
            at = i * stride + j
            store(a, at, without(load(a, at), factor, load(one, j)))
        a[i * stride + n - 1] = one[i] * first
    a[n * stride - stride + n - 1] = -first


@kernel
def _row(a: Floats, n: int, stride: int, k: int, out: Floats) -> None:
    """Row k of a symmetric matrix from its upper half."""
    for i in range(k):
        out[i] = a[i * stride + k]
    for j in range(k, n):
        out[j] = a[k * stride + j]


@summing_kernel
def _half_of_smoother(swept: Floats, n: int, stride: int, out: Floats) -> None:
    """P = I + swept, its upper half with √2 on what stands for two entries, as a unit vector."""
    square = 0.0
    at = 0
    for t in range(n):
        value = swept[t * stride + t] + np.float32(1)
        out[at] = value
        square += value**2
        for s in range(1, n - t):
            value = swept[t * stride + t + s] * np.float32(np.sqrt(2.0))
            out[at + s] = value
            square += value**2
        at += n - t
    scale = np.float32(1 / np.sqrt(square))
    for k in range(at):
        out[k] *= scale
