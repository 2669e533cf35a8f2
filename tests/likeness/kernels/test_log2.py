from __future__ import annotations

import numpy as np

from headcount.likeness.kernels.compile import kernel
from headcount.likeness.kernels.lanes import load, store
from headcount.likeness.kernels.log2 import UNIT, log2_units


@kernel
def _all_of(x, out):
    for k in range(0, len(x), 8):
        store(out, k, log2_units(load(x, k)))


def _log2(x):
    x = np.asarray(x, np.float32)
    out = np.empty(len(x), np.float32)
    _all_of(x, out)
    return out / UNIT


def test_error_over_every_octave_that_attention_can_have():
    x = np.exp2(np.linspace(-60, 1, 800_000)).astype(np.float32)
    exact = np.log2(x.astype(np.float64))
    # the polynomial's own error and its rounding, and half a unit in the last place of the result
    assert (np.abs(_log2(x) - exact) <= 1e-7 + np.abs(exact) * 2**-24).all()


def test_powers_of_two_are_exact_and_zero_is_finite():
    assert _log2([1, 2, 0.5, 0.25, 2**-20, 4, 1024, 2**-100]).tolist() == [
        0, 1, -1, -2, -20, 2, 10, -100,
    ]  # fmt: skip
    assert np.isfinite(_log2(np.zeros(8))).all()
