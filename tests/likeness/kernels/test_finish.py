from __future__ import annotations

import numpy as np

from headcount.likeness.kernels.finish import finish


def test_mirrored_clipped_and_zero_for_identical_heads_only():
    attention = np.full((4, 2, 2), 0.5, np.float32)
    attention[2] = [[0.4, 0.6], [0.5, 0.5]]
    upper = np.full((4, 4), 9.0)
    upper[0, 1], upper[0, 2], upper[0, 3] = 3e-5, 3e-5, -0.2
    upper[1, 2], upper[1, 3], upper[2, 3] = 0.25, 2e-4, 1.5
    found = finish(upper, attention)
    assert found.dtype == np.float32
    assert np.array_equal(found, found.T)
    assert found.diagonal().tolist() == [0, 0, 0, 0]
    assert found[0].tolist() == [0, 0, np.float32(3e-5), 0]  # head 2 is near, not identical
    assert found[1, 2] == 0.25
    assert found[1, 3] == np.float32(2e-4)  # too far for rounding
    assert found[2, 3] == 1
