"""pc: the Procrustes (RLS) coefficient as a distance, 1 - |XᵀY|* / (|X| |Y|), columns centred.

Nothing in |XᵀY|* changes when X and Y are turned alike over their rows, or each by itself over its
columns. So each head is first turned into a lower triangle L, once; a pair then is the nuclear norm
of LᵀL'. It has a row and a column less than queries: centring has taken one direction away.

A head whose rows are all the same is at 0 from another such head and at 1 from every other.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from headcount.likeness.kernels.compile import kernel, summing_kernel
from headcount.likeness.kernels.finish import CONSTANT, Floats, finish
from headcount.likeness.kernels.lanes import (
    Lanes,
    copysign,
    fma,
    load,
    repeat,
    splat,
    sqrt,
    store,
    without,
)
from headcount.likeness.kernels.nuclear import nuclear_norms, reflector_scale, root_terms
from headcount.likeness.kernels.threads import spread

Ints: TypeAlias = NDArray[np.integer]
Bools: TypeAlias = NDArray[np.bool_]

_ZERO = np.float32(0)


def pc(attention: Floats) -> Floats:  # (head, query, key) -> (head, head)
    """1 - Procrustes (RLS) coefficient of the matrices, columns centred."""
    heads, tokens, keys = attention.shape
    blocks = (heads + 7) // 8
    if tokens == 1:  # one row is all there is: no head varies
        return np.zeros((heads, heads), np.float32)
    parts = spread(lambda low, high: _triangles(attention, low, high), blocks)
    lower = np.concatenate([part[0] for part in parts])
    constant = np.concatenate([part[1] for part in parts])[:heads]
    out = 1 - nuclear_of_pairs(lower, heads, tokens - 1, min(tokens - 1, keys))
    out[np.ix_(constant, constant)] = 0
    return finish(out, attention)


def nuclear_of_pairs(lower: Floats, heads: int, rows: int, columns: int) -> Floats:
    """|LᵀL'|* of every pair of heads, above the diagonal.

    `lower` is flat: (block of 8 heads, row, column, head in its block), zero above the diagonal,
    its columns padded to fours; every |L| is at most 1.
    """
    blocks = (heads + 7) // 8
    jobs, terms = _jobs(heads), root_terms()
    parts = spread(
        lambda low, high: _norms(lower, rows, columns, jobs[low:high], *terms), len(jobs)
    )
    out = np.zeros((heads, blocks, 8), np.float32)
    out[jobs[:, 0], jobs[:, 1]] = np.concatenate(parts)
    return out.reshape(heads, blocks * 8)[:, :heads]


@lru_cache
def _jobs(heads: int) -> Ints:
    """Every head with each block of eight that holds a later one."""
    return np.array([(a, b) for a in range(heads) for b in range(a // 8, (heads + 7) // 8)])


def in_lanes(lower: Floats) -> Floats:  # (head, row, column)
    """Matrices with zeros above the diagonal in the form that `nuclear_of_pairs` reads."""
    heads, rows, columns = lower.shape
    blocks, stride = (heads + 7) // 8, (columns + 3) // 4 * 4
    out = np.zeros((blocks * 8, rows, stride), np.float32)
    out[:heads, :, :columns] = lower
    return np.ascontiguousarray(out.reshape(blocks, 8, rows, stride).transpose(0, 2, 3, 1)).ravel()


@kernel
def _norms(
    lower: Floats, rows: int, columns: int, jobs: Ints, tau: Floats, weight: Floats
) -> Floats:
    """The nuclear norms of each job: one head and a block of eight."""
    stride = (columns + 3) // 4 * 4
    block = rows * stride * 8
    m = np.empty(columns * columns * 8, np.float32)
    work = np.empty(columns * 64, np.float32)
    out = np.empty((len(jobs), 8), np.float32)
    flat = out.reshape(-1)
    for k in range(len(jobs)):
        one = jobs[k, 0] // 8 * block + jobs[k, 0] % 8
        _pair_products(lower, one, jobs[k, 1] * block, rows, columns, stride, m)
        store(flat, k * 8, nuclear_norms(m, columns, work, tau, weight))
    return out


@kernel
def _pair_products(
    lower: Floats, one: int, eight: int, rows: int, columns: int, stride: int, m: Floats
) -> None:
    """m[i, j] = Σ over rows of L[row, i] L'[row, j], in tiles of 4 x 2, zeros left out."""
    zero = splat(_ZERO)
    for i in range(0, columns, 4):
        for j in range(0, columns, 2):
            a0, a1, b0, b1, c0, c1, d0, d1 = zero, zero, zero, zero, zero, zero, zero, zero
            for k in range(max(i, j), rows):
                p, q = one + (k * stride + i) * 8, eight + (k * stride + j) * 8
                x, y, z = load(lower, q), load(lower, q + 8), repeat(lower, p)
                a0, a1 = fma(z, x, a0), fma(z, y, a1)
                z = repeat(lower, p + 8)
                b0, b1 = fma(z, x, b0), fma(z, y, b1)
                z = repeat(lower, p + 16)
                c0, c1 = fma(z, x, c0), fma(z, y, c1)
                z = repeat(lower, p + 24)
                d0, d1 = fma(z, x, d0), fma(z, y, d1)
            _store2(m, columns, i, j, a0, a1)
            _store2(m, columns, i + 1, j, b0, b1)
            _store2(m, columns, i + 2, j, c0, c1)
            _store2(m, columns, i + 3, j, d0, d1)


@kernel
def _store2(m: Floats, n: int, i: int, j: int, a: Lanes, b: Lanes) -> None:
    if i < n:
        store(m, (i * n + j) * 8, a)
        if j + 1 < n:
            store(m, (i * n + j + 1) * 8, b)


@kernel
def _triangles(attention: Floats, low: int, high: int) -> tuple[Floats, Bools]:
    """L of the heads in blocks low … high, flat, and which heads have only equal rows."""
    heads, tokens, keys = attention.shape
    rows, columns = tokens - 1, min(tokens - 1, keys)
    stride = (columns + 3) // 4 * 4
    x = np.empty(tokens * keys * 8, np.float32)
    lower = np.zeros((high - low) * rows * stride * 8, np.float32)
    constant = np.zeros((high - low) * 8, np.bool_)
    for block in range(low, high):
        x[:] = 0
        for lane in range(8):
            if block * 8 + lane < heads:
                constant[(block - low) * 8 + lane] = _centre(attention[block * 8 + lane], x, lane)
        _drop_direction(x, tokens, keys)
        _lower(x, rows, keys)
        for i in range(rows):
            for j in range(min(i + 1, columns)):
                at = (((block - low) * rows + i) * stride + j) * 8
                store(lower, at, load(x, (i * keys + j) * 8))
    return lower, constant


@summing_kernel
def _centre(a: Floats, x: Floats, lane: int) -> bool:
    """One head, columns centred, of length 1, into a lane of x; True where nothing is left."""
    tokens, keys = a.shape
    size, square = 0.0, 0.0
    for c in range(keys):
        mean = 0.0
        for t in range(tokens):
            mean += a[t, c]
        mean /= tokens
        for t in range(tokens):
            size += a[t, c] ** 2
            square += (a[t, c] - mean) ** 2
            x[(t * keys + c) * 8 + lane] = a[t, c] - mean
    constant = square <= CONSTANT**2 * size
    scale = np.float32(0 if constant else 1 / np.sqrt(square))
    for k in range(lane, tokens * keys * 8, 8):
        x[k] *= scale
    return constant


@kernel
def _drop_direction(x: Floats, tokens: int, keys: int) -> None:
    """Turn x over its rows so that (1, …, 1), where it is zero, is the first; leave that one out.

    The reflection that does so takes, from a column whose sum is 0, its first value / (√n + 1)
    off each other. The result is (tokens - 1, keys, lane), from the first row on.
    """
    part = splat(np.float32(1 / (np.sqrt(tokens) + 1)))
    for c in range(0, keys * 8, 8):
        first = load(x, c)
        for t in range(1, tokens):
            row = t * keys * 8 + c
            store(x, row - keys * 8, without(load(x, row), part, first))


@kernel
def _lower(x: Floats, rows: int, columns: int) -> None:
    """Reflect columns until x is lower triangular; what is above the diagonal is left undefined."""
    for k in range(min(rows, columns - 1)):
        row = (k * columns) * 8
        square = splat(_ZERO)
        for c in range(k * 8, columns * 8, 8):
            square = fma(load(x, row + c), load(x, row + c), square)
        norm, lead = sqrt(square), load(x, row + k * 8)
        scale = reflector_scale(square, norm, lead)
        store(x, row + k * 8, lead + copysign(norm, lead))
        for i in range(k + 1, rows):
            s = splat(_ZERO)
            for c in range(k * 8, columns * 8, 8):
                s = fma(load(x, row + c), load(x, i * columns * 8 + c), s)
            s = s * scale
            for c in range(k * 8, columns * 8, 8):
                at = i * columns * 8 + c
                store(x, at, without(load(x, at), s, load(x, row + c)))
        store(x, row + k * 8, splat(_ZERO) - copysign(norm, lead))
