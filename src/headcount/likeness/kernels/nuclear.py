"""Nuclear norms (sums of singular values) of eight small matrices at once, one in each lane.

Householder reflections make a matrix bidiagonal, B. The sum of its singular values is tr √(BᵀB),
and √x is, to 6e-8 on [1e-14, 1], a sum of terms w x / (x + τ): each needs only
tr BᵀB (BᵀB + τI)⁻¹, a short recurrence along the diagonals in which everything is positive, so
nothing cancels. No iteration, no convergence test, no branch: the lanes never part.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from headcount.likeness.kernels.compile import kernel
from headcount.likeness.kernels.finish import Floats
from headcount.likeness.kernels.lanes import (
    Lanes,
    absolute,
    copysign,
    fma,
    larger,
    load,
    splat,
    sqrt,
    store,
    where_less,
    without,
)

_ZERO, _ONE, _TINY = np.float32(0), np.float32(1), np.float32(1e-30)


@lru_cache
def root_terms(count: int = 32, least: float = 1e-14) -> tuple[Floats, Floats]:
    """τ and w with √x ≈ Σ w x / (x + τ), relative error below 1e-7 for x in [least, 1].

    The trapezoidal rule for an integral of √x after a conformal map of the plane minus the
    negative axis and [least, 1] (Hale, Higham & Trefethen 2008, method 3). The map is the elliptic
    function sc, here by descending Landen steps; the upper half of the nodes mirrors the lower.
    """
    a, b = 1.0, np.sqrt(least)
    means, gaps = [a], []
    while abs(a - b) > 1e-15 * a:
        a, b, gap = (a + b) / 2, np.sqrt(a * b), (a - b) / 2
        means.append(a)
        gaps.append(gap)
    period = np.pi / (2 * a)
    angle = 2 ** len(gaps) * a * (np.arange(count // 2) + 0.5) * period / count
    for mean, gap in zip(reversed(means), reversed(gaps), strict=False):
        angle = (angle + np.arcsin(gap / mean * np.sin(angle))) / 2
    t = np.tan(angle)
    t = np.concatenate([t, 1 / (np.sqrt(least) * t[::-1])])
    weight = 2 * period * np.sqrt(least) / (np.pi * count)
    weights = weight * np.sqrt((1 + t * t) * (1 + least * t * t))
    return (least * t * t).astype(np.float32), weights.astype(np.float32)


@kernel
def nuclear_norms(m: Floats, n: int, work: Floats, tau: Floats, weight: Floats) -> Lanes:
    """Eight nuclear norms; `m` is flat, (n, n, lane), and is used up; `work` has 8 n lanes.

    The matrices' Frobenius norms are at most about 1.
    """
    _bidiagonalise(m, n, work)
    return _sum_of_roots(work, n, tau, weight)


@kernel
def _sum_of_roots(work: Floats, n: int, tau: Floats, weight: Floats) -> Lanes:
    """Σ σ from the squares of the two diagonals, work[: 8n] and work[8n : 16n].

    Along BᵀB + τI = LDLᵀ: D = a + s with s the part that τ brings in, and q its derivative when B
    is scaled; Σ (a + q) / D = tr BᵀB (BᵀB + τI)⁻¹. Four terms at a time hide the divisions.
    """
    zero, one = splat(_ZERO), splat(_ONE)
    out = zero
    for k in range(0, len(tau), 4):
        t0, t1, t2, t3 = splat(tau[k]), splat(tau[k + 1]), splat(tau[k + 2]), splat(tau[k + 3])
        s0, s1, s2, s3 = t0, t1, t2, t3
        q0, q1, q2, q3 = zero, zero, zero, zero
        f0, f1, f2, f3 = zero, zero, zero, zero
        for i in range(0, n * 8, 8):
            a, b = load(work, i), load(work, n * 8 + i)
            r0, r1, r2, r3 = one / (a + s0), one / (a + s1), one / (a + s2), one / (a + s3)
            f0, f1 = fma(a + q0, r0, f0), fma(a + q1, r1, f1)
            f2, f3 = fma(a + q2, r2, f2), fma(a + q3, r3, f3)
            x0, x1, x2, x3 = s0 * r0, s1 * r1, s2 * r2, s3 * r3
            s0, s1, s2, s3 = fma(b, x0, t0), fma(b, x1, t1), fma(b, x2, t2), fma(b, x3, t3)
            q0 = b * fma(a * r0 * r0, q0, x0 * x0)
            q1 = b * fma(a * r1 * r1, q1, x1 * x1)
            q2 = b * fma(a * r2 * r2, q2, x2 * x2)
            q3 = b * fma(a * r3 * r3, q3, x3 * x3)
        out = fma(splat(weight[k]), f0, out)
        out = fma(splat(weight[k + 1]), f1, out)
        out = fma(splat(weight[k + 2]), f2, out)
        out = fma(splat(weight[k + 3]), f3, out)
    return out


@kernel
def _bidiagonalise(m: Floats, n: int, work: Floats) -> None:
    """Squares of the diagonal and of the one above it, of the bidiagonal form of `m`, into `work`.

    Left reflector I - v vᵀ/·, right reflector I - u uᵀ/·. Both updates of a step are made in one
    pass, which also gathers the next left product w = vᵀM (after Howell et al. 2008).
    """
    diagonal, above = work[: n * 8], work[n * 8 : n * 16]
    v, new_v, u = work[n * 16 : n * 24], work[n * 24 : n * 32], work[n * 32 : n * 40]
    w, new_w, y = work[n * 40 : n * 48], work[n * 48 : n * 56], work[n * 56 : n * 64]
    for i in range(n):
        store(v, i * 8, load(m, i * n * 8))
    scale_v = _reflector(v, 0, n, diagonal, 0)
    for j in range(1, n):
        s = splat(_ZERO)
        for i in range(n):
            s = fma(load(v, i * 8), load(m, (i * n + j) * 8), s)
        store(w, j * 8, s)
    for k in range(n - 1):
        for j in range(k + 1, n):
            store(w, j * 8, load(w, j * 8) * scale_v)
            store(u, j * 8, load(m, (k * n + j) * 8) - load(v, k * 8) * load(w, j * 8))
        scale_u = _reflector(u, k + 1, n, above, k)
        _right_products(m, n, k + 1, u, v, w, scale_u, y)
        ahead, aside = load(w, (k + 1) * 8), load(u, (k + 1) * 8)
        for i in range(k + 1, n):
            x = without(load(m, (i * n + k + 1) * 8), load(v, i * 8), ahead)
            store(new_v, i * 8, without(x, load(y, i * 8), aside))
        scale_v = _reflector(new_v, k + 1, n, diagonal, k + 1)
        _update(m, n, k + 1, v, w, y, u, new_v, new_w)
        v, new_v, w, new_w = new_v, v, new_w, w


@kernel
def _reflector(x: Floats, first: int, n: int, squares: Floats, at: int) -> Lanes:
    """Turn the vector x[first:n] into its Householder vector; its |x|² goes to `squares`."""
    square = splat(_ZERO)
    for i in range(first, n):
        square = fma(load(x, i * 8), load(x, i * 8), square)
    store(squares, at * 8, square)
    norm, lead = sqrt(square), load(x, first * 8)
    store(x, first * 8, lead + copysign(norm, lead))
    return reflector_scale(square, norm, lead)


@kernel
def reflector_scale(square: Lanes, norm: Lanes, lead: Lanes) -> Lanes:
    """2 / |v|² of the Householder vector v = x + sign(lead) |x| e; 0 where x is next to nothing.

    There |v|² would underflow and the reflection no longer be one; x itself, 1e-15 of the whole,
    counts as zero.
    """
    halved = larger(norm * (norm + absolute(lead)), splat(_TINY))
    return where_less(square, splat(_TINY), splat(_ZERO), splat(_ONE) / halved)


@kernel
def _right_products(
    m: Floats, n: int, first: int, u: Floats, v: Floats, w: Floats, scale: Lanes, y: Floats
) -> None:
    """y = scale (M - v wᵀ) u over rows and columns from `first` on, M not yet updated by v wᵀ."""
    both = splat(_ZERO)
    for j in range(first, n):
        both = fma(load(w, j * 8), load(u, j * 8), both)
    row = n * 8
    last = n - (n - first) % 4
    for i in range(first, last, 4):
        s0, s1, s2, s3 = splat(_ZERO), splat(_ZERO), splat(_ZERO), splat(_ZERO)
        for j in range(first * 8, row, 8):
            x, at = load(u, j), i * row + j
            s0, s1 = fma(load(m, at), x, s0), fma(load(m, at + row), x, s1)
            at += 2 * row
            s2, s3 = fma(load(m, at), x, s2), fma(load(m, at + row), x, s3)
        store(y, i * 8, scale * (s0 - load(v, i * 8) * both))
        store(y, i * 8 + 8, scale * (s1 - load(v, i * 8 + 8) * both))
        store(y, i * 8 + 16, scale * (s2 - load(v, i * 8 + 16) * both))
        store(y, i * 8 + 24, scale * (s3 - load(v, i * 8 + 24) * both))
    for i in range(last, n):
        s0 = splat(_ZERO)
        for j in range(first * 8, row, 8):
            s0 = fma(load(m, i * row + j), load(u, j), s0)
        store(y, i * 8, scale * (s0 - load(v, i * 8) * both))


@kernel
def _update(
    m: Floats,
    n: int,
    first: int,
    v: Floats,
    w: Floats,
    y: Floats,
    u: Floats,
    new_v: Floats,
    new_w: Floats,
) -> None:
    """M -= v wᵀ + y uᵀ past column `first`, and new_w = new_vᵀM of the result."""
    row, start = n * 8, (first + 1) * 8
    for j in range(start, row, 8):
        store(new_w, j, splat(_ZERO))
    last = n - (n - first) % 4
    for i in range(first * 8, last * 8, 32):
        v0, v1, v2, v3 = load(v, i), load(v, i + 8), load(v, i + 16), load(v, i + 24)
        y0, y1, y2, y3 = load(y, i), load(y, i + 8), load(y, i + 16), load(y, i + 24)
        z0, z1 = load(new_v, i), load(new_v, i + 8)
        z2, z3 = load(new_v, i + 16), load(new_v, i + 24)
        for j in range(start, row, 8):
            a, b, at = load(w, j), load(u, j), i * n + j
            x = without(without(load(m, at), v0, a), y0, b)
            store(m, at, x)
            s = fma(z0, x, load(new_w, j))
            x = without(without(load(m, at + row), v1, a), y1, b)
            store(m, at + row, x)
            s = fma(z1, x, s)
            x = without(without(load(m, at + 2 * row), v2, a), y2, b)
            store(m, at + 2 * row, x)
            s = fma(z2, x, s)
            x = without(without(load(m, at + 3 * row), v3, a), y3, b)
            store(m, at + 3 * row, x)
            store(new_w, j, fma(z3, x, s))
    for i in range(last * 8, row, 8):
        v0, y0, z0 = load(v, i), load(y, i), load(new_v, i)
        for j in range(start, row, 8):
            x = without(without(load(m, i * n + j), v0, load(w, j)), y0, load(u, j))
            store(m, i * n + j, x)
            store(new_w, j, fma(z0, x, load(new_w, j)))
