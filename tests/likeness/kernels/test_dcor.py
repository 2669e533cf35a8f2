from __future__ import annotations

import numpy as np

from headcount.likeness.distances import distances
from likeness.oracles import oracle


def test_heads_that_are_independent_are_at_one_by_dcor():
    """Rounding of 1e-9 in a square that is 0 would be 3e-5 in its root."""
    rng = np.random.default_rng(0)
    token, same = np.arange(20), np.full(20, 0)
    some = [rng.dirichlet(np.full(20, width), 5)[token % 5] for width in (0.05, 1, 10)]
    others = [rng.dirichlet(np.full(20, width), 4)[token // 5] for width in (0.05, 1, 10)]
    constant = rng.dirichlet(np.ones(20), 1)[same]
    attention = np.stack([*some, *others, constant]).astype(np.float32)
    found = distances(attention, "dcor")["dcor"]
    assert np.abs(found[:3, 3:] - 1).max() <= 1e-6
    assert np.abs(found - oracle("dcor", attention)).max() <= 1e-6
