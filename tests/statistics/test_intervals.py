from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from headcount.statistics.intervals import (
    correlation_interval,
    deviation,
    interval,
    median_interval,
    percentiles,
    rank_correlation,
    standard_error,
)


def test_the_interval_is_students() -> None:
    values = [1.0, 2.0, 4.0, 8.0]
    mean, low, high = interval(values)
    wanted = stats.t.interval(0.95, 3, loc=np.mean(values), scale=stats.sem(values))
    assert (mean, low, high) == pytest.approx((3.75, *wanted))
    assert interval([5.0])[0] == 5
    assert np.isnan(interval([5.0])[1:]).all()


def test_spread_of_the_population() -> None:
    values = [1.0, 2.0, 4.0, 8.0]
    mean = sum(values) / 4
    wanted = math.sqrt(sum((value - mean) ** 2 for value in values) / 3)
    assert deviation(values) == pytest.approx(wanted)
    assert standard_error(values) == pytest.approx(wanted / 2)
    assert math.isnan(deviation([1.0]))


def test_percentiles_leave_out_what_has_no_value() -> None:
    values = np.arange(41.0)
    assert percentiles(values) == (1.0, 39.0, 0)
    assert percentiles([math.nan, *values, math.nan]) == (1.0, 39.0, 2)
    low, high, missing = percentiles([math.nan])
    assert math.isnan(low)
    assert math.isnan(high)
    assert missing == 1


@pytest.mark.parametrize("n", [6, 8, 9, 11])
def test_a_medians_interval_by_all_tosses_of_n_coins(n: int) -> None:
    heads = [sum(toss) for toss in product((0, 1), repeat=n)]
    # the narrowest k-th smallest to k-th largest that encloses the median 95 times in 100
    sure = [
        k for k in range(1, n // 2 + 1) if np.mean([k <= each <= n - k for each in heads]) >= 0.95
    ]
    assert median_interval(list(range(1, n + 1))) == (max(sure), n + 1 - max(sure))


def test_a_medians_interval_of_too_few_is_their_range() -> None:
    assert median_interval([3, 1, 2]) == (1, 3)


def test_a_correlations_interval_is_fishers() -> None:
    x = np.random.default_rng(0).normal(size=20)
    y = x + np.random.default_rng(1).normal(size=20)
    found = stats.pearsonr(x, y)
    low, high = found.confidence_interval(0.95)
    assert correlation_interval(found.statistic, 20) == (pytest.approx(low), pytest.approx(high))
    assert correlation_interval(1.0, 20) == (1.0, 1.0)
    assert math.isnan(correlation_interval(0.5, 3)[0])


def test_rank_correlation_counts_orders() -> None:
    x, y = [1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 4.0]
    found = rank_correlation(x, y)
    assert found["rho"] == pytest.approx(stats.spearmanr(x, y).statistic)
    assert found["p"] == pytest.approx(8 / 24)  # orders with |rho| of 0.8 and more
    many = list(range(30))
    assert rank_correlation(many, many)["p"] == pytest.approx(1 / 10000)
    assert math.isnan(rank_correlation([1, 1, 1], [1, 2, 3])["rho"])
