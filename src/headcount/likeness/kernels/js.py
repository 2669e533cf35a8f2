"""js: the Jensen–Shannon distance, base 2, mean over tokens.

With F(x) = x log₂x and s = p + q, the divergence of two rows is ½ Σ (F(p) + p + F(q) + q - F(s)):
one logarithm per pair, token and key. In single precision the sum must not grow: F(2q) = 2F(q) + 2q
is taken from every term F(s), near to it where p is near q, and given back at the end in double
precision. Where the divergence is so small that its root would still show the rounding, it is
summed anew from t = (p - q) / s, with nothing to cancel.
"""

from __future__ import annotations

import numpy as np

from headcount.likeness.kernels.compile import kernel
from headcount.likeness.kernels.finish import Floats, finish
from headcount.likeness.kernels.lanes import (
    Lanes,
    fma,
    larger,
    load,
    lowest,
    narrow,
    repeat,
    splat,
    sqrt,
    store,
    where_less,
    widen,
)
from headcount.likeness.kernels.log2 import UNIT, log2_units
from headcount.likeness.kernels.threads import spread

_ZERO, _HALF, _MINUS_TWO = np.float32(0), np.float32(0.5), np.float32(-2)
_UNIT, _PER_UNIT = np.float32(UNIT), np.float32(1 / UNIT)
_CLOSE = np.float32(2e-2)
_TINY = np.float32(1e-37)
_SMALL = np.float32(0.25**2)
_BY = 32 * 8
_DONE = np.tril(np.ones((8, 8), np.float32)).ravel()
# Σ t²ᵏ / (2k (2k - 1)) / ln 2 for k = 1, 2, …: a key's share of the divergence is s/2 times this
_SERIES = (1 / (np.arange(2, 11, 2) * np.arange(1, 10, 2)) / np.log(2)).astype(np.float32)


def js(attention: Floats) -> Floats:  # (head, query, key) -> (head, head)
    """Jensen–Shannon distance (base 2) of the rows, mean over tokens."""
    heads, tokens, _ = attention.shape
    parts = spread(lambda low, high: _sums(attention, low, high), tokens)
    return finish(np.sum(parts, axis=0)[:heads, :heads] / tokens, attention)


@kernel
def _sums(attention: Floats, low: int, high: int) -> Floats:
    """Σ over tokens low … high of every pair's distance, above the diagonal."""
    heads, _, keys = attention.shape
    blocks = (heads + 7) // 8
    out = np.zeros(blocks * 8 * blocks * 8)
    p = np.zeros(blocks * keys * 8, np.float32)  # (block of 8 heads, key, head in its block)
    twice = np.empty_like(p)  # -F(2p), in the units of the logarithm
    sums = np.empty(blocks * 8)  # of them, over keys
    surplus = np.empty(blocks * 8, np.float32)
    for t in range(low, high):
        for head in range(heads):
            at = head // 8 * keys * 8 + head % 8
            for c in range(keys):
                p[at + c * 8] = attention[head, t, c]
        _prepare(p, twice, keys, sums)
        _add_distances(p, twice, keys, sums, surplus, out)
    return out.reshape(blocks * 8, blocks * 8)


@kernel
def _prepare(p: Floats, twice: Floats, keys: int, sums: Floats) -> None:
    """-F(2p) of every head and key, and their sums over the keys."""
    for b in range(0, len(sums), 8):
        total = widen(splat(_ZERO))
        for k in range(b * keys, (b + 8) * keys, 8):
            x = load(p, k)
            value = splat(_MINUS_TWO) * fma(x, log2_units(x), x * splat(_UNIT))
            store(twice, k, value)
            total = total + widen(value)
        store(sums, b, total)


@kernel
def _add_distances(
    p: Floats, twice: Floats, keys: int, sums: Floats, surplus: Floats, out: Floats
) -> None:
    """Add one token's distances to `out`."""
    half = splat(_HALF)
    for a in range(len(sums)):
        one = a // 8 * keys * 8 + a % 8
        # a loop of its own, or the one inside it runs out of registers
        for b in range(a // 8, len(sums) // 8):
            store(surplus, b * 8, _cross(p, twice, one, b * keys * 8, keys))
        for b in range(a // 8, len(sums) // 8):
            given = narrow(load(sums, b * 8) - repeat(sums, a))
            divergence = half * splat(_PER_UNIT) * (half * given - load(surplus, b * 8))
            if b == a // 8:  # not with itself, nor with a head that had its turn
                divergence = divergence + load(_DONE, a % 8 * 8)
            if lowest(divergence) < _CLOSE:
                near = _near(p, twice, one, b * keys * 8, keys)
                divergence = where_less(divergence, splat(_CLOSE), near, divergence)
            at = a * len(sums) + b * 8
            store(out, at, load(out, at) + widen(sqrt(divergence)))


@kernel
def _cross(p: Floats, twice: Floats, one: int, eight: int, keys: int) -> Lanes:
    """Σ F(p + q) - F(2q) of one head and eight others."""
    whole = keys * 8 // _BY * _BY
    out = splat(_ZERO)
    for c in range(whole, keys * 8, 8):
        s = repeat(p, one + c) + load(p, eight + c)
        out = out + fma(s, log2_units(s), load(twice, eight + c))
    for start in range(0, whole, _BY):  # sums of sums round less than one long sum
        part = splat(_ZERO)
        for c in range(start, start + _BY, 8):
            s = repeat(p, one + c) + load(p, eight + c)
            part = part + fma(s, log2_units(s), load(twice, eight + c))
        out = out + part
    return out


@kernel
def _near(p: Floats, twice: Floats, one: int, eight: int, keys: int) -> Lanes:
    """The divergences of one head to eight, exact however near they are."""
    out, half = splat(_ZERO), splat(_HALF)
    for c in range(0, keys * 8, 8):
        x, y = repeat(p, one + c), load(p, eight + c)
        s = x + y
        t = (x - y) / larger(s, splat(_TINY))
        square = t * t
        series = splat(_ZERO)
        for k in range(len(_SERIES) - 1, -1, -1):
            series = fma(series, square, splat(_SERIES[k]))
        both = half * (repeat(twice, one + c) + load(twice, eight + c))
        apart = splat(-_PER_UNIT) * fma(s, log2_units(s), both)
        out = fma(half, where_less(square, splat(_SMALL), s * square * series, apart), out)
    return out
