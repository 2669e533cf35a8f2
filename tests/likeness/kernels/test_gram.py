from __future__ import annotations

import numpy as np
import pytest

from headcount.likeness.kernels.gram import bc, corr, cos, empty_halves, pq, products_of_halves
from likeness.oracles import hard_attention


@pytest.mark.parametrize(("heads", "tokens"), [(3, 5), (14, 9)])
def test_each_by_its_formula(heads: int, tokens: int) -> None:
    attention = hard_attention(heads, tokens, tokens, seed=3)
    p, q = (attention[i].astype(np.float64) for i in (0, heads - 1))
    cosine = (p * q).sum(1) / np.linalg.norm(p, axis=1) / np.linalg.norm(q, axis=1)
    assert cos(attention)[0, -1] == pytest.approx(1 - cosine.mean(), abs=1e-6)
    assert bc(attention)[0, -1] == pytest.approx(1 - np.sqrt(p * q).sum(1).mean(), abs=1e-6)
    assert pq(attention)[0, -1] == pytest.approx(1 - (p * q).sum(1).mean(), abs=1e-6)
    rows = zip(p, q, strict=True)
    r = [1.0 if np.ptp(a) == np.ptp(b) == 0 else _correlation(a, b) for a, b in rows]
    assert corr(attention)[0, -1] == pytest.approx((1 - np.mean(r)) / 2, abs=1e-6)


def _correlation(a, b):
    return 0.0 if np.ptp(a) == 0 or np.ptp(b) == 0 else np.corrcoef(a, b)[0, 1]


def test_products_of_halves_are_those_of_their_rows() -> None:
    halves = empty_halves(np.zeros((13, 4, 4), np.float32))
    assert halves.shape == (24, 16)
    halves[:13, :11] = np.random.default_rng(0).normal(size=(13, 11))
    found = products_of_halves(halves, 13)
    wanted = halves.astype(np.float64) @ halves.T.astype(np.float64)
    above = np.triu_indices(13)
    np.testing.assert_allclose(found[above], wanted[:13, :13][above], atol=1e-5)
