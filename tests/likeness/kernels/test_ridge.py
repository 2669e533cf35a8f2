from __future__ import annotations

import numpy as np
import pytest

from headcount.likeness.distances import distances
from likeness.oracles import BARS, hard_attention, oracle


@pytest.mark.parametrize("kappa", [1e-4, 0.05, 2.0, 100.0])
def test_ridge_at_other_kappas(kappa):
    attention = hard_attention(40, 15, 15, seed=10)
    found = distances(attention, "cc", cc={"kappa": kappa})["cc"]
    assert np.abs(found - oracle("cc", attention, kappa=kappa)).max() <= BARS["cc"]
