from __future__ import annotations

import numpy as np

from headcount.behaviour.moments import Moments


def test_means_and_errors_leave_out_what_is_not_there() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(5, 2, (40, 3, 4))
    values[rng.random(values.shape) < 0.3] = np.nan
    values[:, 0, 0] = np.nan
    values[1:, 0, 1] = np.nan
    values[0, 0, 1] = 7.0
    found = Moments((3, 4))
    for start in range(0, 40, 7):
        found.add(values[start : start + 7])
    count = (~np.isnan(values)).sum(0)
    np.testing.assert_array_equal(found.count, count)
    several = count > 1
    np.testing.assert_allclose(found.mean[several], np.nanmean(values[:, several], axis=0))
    spread = np.nanstd(values[:, several], axis=0, ddof=1) / np.sqrt(count[several])
    np.testing.assert_allclose(found.stderr[several], spread)
    assert np.isnan(found.mean[0, 0])
    assert found.mean[0, 1] == 7.0
    assert np.isnan(found.stderr[0, :2]).all()
