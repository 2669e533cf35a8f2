from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from headcount.likeness.kernels.js import js
from likeness.oracles import hard_attention


def test_it_is_scipys_mean_over_tokens() -> None:
    attention = hard_attention(10, 7, 11, seed=1)
    found = js(attention)
    wide = attention.astype(np.float64)
    for i in range(10):
        for j in range(i):
            expected = jensenshannon(wide[i], wide[j], base=2, axis=1).mean()
            assert found[i, j] == pytest.approx(expected, abs=1e-6)


def test_rows_that_share_nothing_are_at_one_and_near_ones_keep_their_digits() -> None:
    one = np.tile(np.float32([1, 0, 0, 0]), (3, 1))
    other = np.tile(np.float32([0, 0, 1, 0]), (3, 1))
    near = np.tile(np.float32([0.999999, 0.000001, 0, 0]), (3, 1))
    found = js(np.stack([one, other, near]))
    assert found[0, 1] == 1
    expected = jensenshannon(one[0].astype(float), near[0].astype(float), base=2)
    assert found[0, 2] == pytest.approx(expected, rel=1e-3)
