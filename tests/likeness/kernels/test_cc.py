from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from headcount.base.errors import UsageError
from headcount.likeness.distances import distances
from likeness.oracles import hard_attention, oracle


def test_rv_is_the_limit_of_ridge():
    attention = hard_attention(20, 15, 15, seed=11)
    rv = distances(attention, "cc", cc={"method": "rv"})["cc"]
    assert np.abs(rv - oracle("cc", attention, kappa=1e9)).max() < 1e-6


@pytest.mark.parametrize(("method", "keep"), [("svcca", 0.99), ("truncated", 3)])
@pytest.mark.filterwarnings("ignore:Truncated")
def test_svcca_and_truncated_are_mean_canonical_correlations(method, keep):
    attention = hard_attention(12, 15, 15, seed=12)
    found = distances(attention, "cc", cc={"method": method, "rank": 3})["cc"]
    wide = attention.astype(np.float64)
    for i in range(12):
        for j in range(i):
            a, b = _leading(wide[i], keep), _leading(wide[j], keep)
            mean = np.cos(subspace_angles(a, b)).mean()
            assert found[i, j] == pytest.approx(1 - mean, abs=3e-6)


def test_truncated_warns_that_its_result_hangs_on_the_rank():
    with pytest.warns(UserWarning, match=r"number of directions \(rank=3\)"):
        distances(hard_attention(3, 5, 5), "cc", cc={"method": "truncated", "rank": 3})


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"method": "rigde"}, "Did you mean 'ridge'"),
        ({"kappa": 0}, "positive"),
        ({"variance": 1.5}, "between 0 and 1"),
        ({"rank": 0}, "at least 1"),
    ],
)
def test_wrong_options_of_cc_are_refused(options, says):
    with pytest.raises(UsageError, match=says):
        distances(hard_attention(3, 5, 5), "cc", cc=options)


def _leading(head, keep):
    u, s, _ = np.linalg.svd(head - head.mean(0), full_matrices=False)
    if isinstance(keep, float):
        keep = 1 + int((np.cumsum(s**2) / (s**2).sum() < keep).sum())
    return u[:, : min(keep, int((s > 1e-6 * s[0]).sum()))]
