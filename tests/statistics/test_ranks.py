from __future__ import annotations

import math

import pytest
from scipy import stats

from headcount.statistics.ranks import rank_correlation


def test_rank_correlation_counts_orders() -> None:
    x, y = [1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 4.0]
    found = rank_correlation(x, y)
    assert found["rho"] == pytest.approx(stats.spearmanr(x, y).statistic)
    assert found["p"] == pytest.approx(8 / 24)  # orders with |rho| of 0.8 and more
    many = list(range(30))
    assert rank_correlation(many, many)["p"] == pytest.approx(1 / 10000)
    assert math.isnan(rank_correlation([1, 1, 1], [1, 2, 3])["rho"])
