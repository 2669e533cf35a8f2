from __future__ import annotations

import numpy as np
import pytest

from headcount.base.errors import UsageError
from headcount.likeness.running import RunningMoments

KEY = ("encoder", "js")


def test_mean_and_error_are_numpys():
    drawn = 0.5 + 1e-3 * np.random.default_rng(0).random((50, 4, 4)).astype(np.float32)
    running = RunningMoments()
    for each in drawn:
        running.add({KEY: each})
    found = running.measured()[KEY]
    wide = drawn.astype(np.float64)
    error = wide.std(0, ddof=1) / 50**0.5
    np.testing.assert_allclose(found.values, wide.mean(0), rtol=1e-12)
    np.testing.assert_allclose(found.stderr, error, rtol=1e-7)
    assert running.largest_error() == pytest.approx(error.max())


def test_one_input_has_no_error():
    running = RunningMoments()
    running.add({KEY: np.zeros((2, 2), np.float32)})
    assert running.largest_error() == float("inf")
    assert np.isnan(running.measured()[KEY].stderr).all()


def test_inputs_reach_the_same_stacks():
    running = RunningMoments()
    running.add({KEY: np.zeros((2, 2), np.float32)})
    with pytest.raises(UsageError, match=r"Input 2 reached other stacks \(cross\)"):
        running.add({("cross", "js"): np.zeros((2, 2), np.float32)})
