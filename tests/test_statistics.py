from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from headcount.statistics import interval, paired, rank_correlation


def test_the_interval_is_students() -> None:
    values = [1.0, 2.0, 4.0, 8.0]
    mean, low, high = interval(values)
    wanted = stats.t.interval(0.95, 3, loc=np.mean(values), scale=stats.sem(values))
    assert (mean, low, high) == pytest.approx((3.75, *wanted))
    assert interval([5.0])[0] == 5
    assert np.isnan(interval([5.0])[1:]).all()


def test_pairs_are_those_of_the_same_seed() -> None:
    one, other = {0: 0.9, 1: 0.8, 2: 0.7, 9: 5.0}, {2: 0.4, 1: 0.6, 0: 0.5, 7: 1.0}
    found = paired(one, other)
    wanted = stats.ttest_rel([0.9, 0.8, 0.7], [0.5, 0.6, 0.4])
    assert found["seeds"] == 3
    assert found["mean"] == pytest.approx(0.3)
    assert found["p"] == pytest.approx(wanted.pvalue)
    assert paired({0: 1.0, 1: 2.0}, {0: 1.0, 1: 2.0})["p"] == 1
    assert paired({0: 2.0, 1: 3.0}, {0: 1.0, 1: 2.0})["p"] == 0
    assert math.isnan(paired({0: 1.0}, {0: 0.0})["p"])
    assert paired({0: 1.0}, {1: 1.0})["seeds"] == 0


def test_rank_correlation_counts_orders() -> None:
    x, y = [1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 4.0]
    found = rank_correlation(x, y)
    assert found["rho"] == pytest.approx(stats.spearmanr(x, y).statistic)
    assert found["p"] == pytest.approx(8 / 24)  # orders with |rho| of 0.8 and more
    many = list(range(30))
    assert rank_correlation(many, many)["p"] == pytest.approx(1 / 10000)
    assert math.isnan(rank_correlation([1, 1, 1], [1, 2, 3])["rho"])
