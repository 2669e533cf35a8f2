from __future__ import annotations

import numpy as np

from headcount.likeness.kernels.compile import kernel
from headcount.likeness.kernels.lanes import (
    absolute,
    copysign,
    fma,
    larger,
    load,
    lowest,
    narrow,
    repeat,
    splat,
    sqrt,
    store,
    total,
    where_less,
    widen,
    without,
)

A = np.array([1, -2, 3, -4, 5, -6, 7, 0.5], np.float32)
B = np.array([4, 3, 2, 1, 0.5, 0.25, -1, -2], np.float32)
C = np.array([9, 9, 9, 9, -9, -9, -9, -9], np.float32)


@kernel
def _everything(abc, out, sums):
    a, b, c = load(abc, 0), load(abc, 8), load(abc, 16)
    store(out, 0, a + b)
    store(out, 8, a - b)
    store(out, 16, a * b)
    store(out, 24, fma(a, b, c))
    store(out, 32, without(c, a, b))
    store(out, 40, sqrt(absolute(a)))
    store(out, 48, copysign(a, c))
    store(out, 56, larger(a, b))
    store(out, 64, where_less(a, b, c, splat(np.float32(0))))
    store(out, 72, repeat(abc, 3))
    store(out, 80, narrow(widen(a) * widen(b)))
    sums[0] = total(a)
    sums[1] = lowest(a)


def test_eight_at_a_time_is_one_at_a_time() -> None:
    out, sums = np.zeros(88, np.float32), np.zeros(2, np.float32)
    _everything(np.concatenate([A, B, C]), out, sums)
    wanted = [
        A + B,
        A - B,
        A * B,
        A * B + C,
        C - A * B,
        np.sqrt(np.abs(A)),
        np.copysign(A, C),
        np.maximum(A, B),
        np.where(A < B, C, 0),
        np.full(8, A[3]),
        A * B,
    ]
    np.testing.assert_allclose(out.reshape(-1, 8), wanted, rtol=1e-6)
    assert sums.tolist() == [A.sum(), A.min()]
