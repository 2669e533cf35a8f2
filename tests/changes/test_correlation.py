from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import linregress, pearsonr, spearmanr

from headcount.base.errors import UsageError
from headcount.changes.correlation import correlate

numbers = st.floats(-100, 100).map(lambda x: round(x, 3))


@given(st.lists(st.tuples(numbers, numbers), min_size=4, max_size=30))
def test_it_is_scipys(points):
    x, y = np.array(points).T
    assume(np.ptp(x) > 0.01)
    assume(np.ptp(y) > 0.01)
    found = correlate(x, y)
    expected = pearsonr(x, y)
    assert found.pearson == pytest.approx(expected.statistic, abs=1e-9)
    assert found.spearman == pytest.approx(spearmanr(x, y).statistic, abs=1e-9)
    assert found.n == len(points)
    line = linregress(x, y)
    assert (found.slope, found.intercept) == (
        pytest.approx(line.slope, rel=1e-6, abs=1e-9),
        pytest.approx(line.intercept, rel=1e-6, abs=1e-6),
    )
    if abs(found.pearson) < 1 - 1e-6:
        interval = expected.confidence_interval(0.95)
        assert (found.low, found.high) == pytest.approx((interval.low, interval.high), abs=1e-6)
        assert found.p == pytest.approx(expected.pvalue, rel=1e-3, abs=1e-9)
    assert found.low <= found.pearson <= found.high


def test_the_interval_of_ranks_is_wider():
    rng = np.random.default_rng(0)
    x = rng.normal(size=50)
    y = x + rng.normal(size=50)
    found = correlate(x, y)
    z, wide = math.atanh(found.spearman), 1.959964 * math.sqrt((1 + found.spearman**2 / 2) / 47)
    assert found.spearman_low == pytest.approx(math.tanh(z - wide), abs=1e-6)
    assert found.spearman_high == pytest.approx(math.tanh(z + wide), abs=1e-6)


@pytest.mark.parametrize(
    ("x", "y"), [([1, 1, 1, 1], [1, 2, 3, 4]), ([0.1, 0.2], [3, 3]), ([1], [2])]
)
def test_nothing_that_varies_has_no_correlation(x, y):
    found = correlate(x, y)
    assert math.isnan(found.pearson)
    assert math.isnan(found.slope)


def test_few_points_have_no_interval():
    found = correlate([1, 2, 3], [2, 1, 3])
    assert math.isnan(found.low)
    assert found.pearson == pytest.approx(0.5)


def test_a_perfect_line():
    found = correlate(range(9), [2 * x + 1 for x in range(9)])
    assert (found.pearson, found.spearman, found.low, found.high) == pytest.approx((1, 1, 1, 1))
    assert (found.slope, found.intercept) == pytest.approx((2, 1))


def test_what_cannot_be_correlated():
    with pytest.raises(UsageError, match="3 numbers cannot be correlated with 2"):
        correlate([1, 2, 3], [1, 2])
    with pytest.raises(UsageError, match="NaN"):
        correlate([1, float("nan")], [1, 2])
