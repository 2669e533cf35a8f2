from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from headcount.base.errors import UsageError
from headcount.likeness.agreement import agree, agreements, head_interval, mantel


def matrix(heads=12, seed=0, of=None, noise=0.0):
    """A symmetric matrix with zeros on its diagonal: random, or another one with noise."""
    rng = np.random.default_rng(seed)
    values = rng.random((heads, heads)) if of is None else of + noise * rng.normal(size=of.shape)
    values = np.triu(values, 1)
    return values + values.T


def test_measures_are_those_of_scipy_over_the_pairs():
    a, b = matrix(seed=1), matrix(seed=2)
    upper = np.triu_indices(12, 1)
    found = agree(a, b)
    assert found.pearson == pytest.approx(pearsonr(a[upper], b[upper])[0])
    assert found.spearman == pytest.approx(spearmanr(a[upper], b[upper])[0])
    assert found.normalised == pytest.approx((1 + found.pearson) / 2)
    assert found.mean_difference == pytest.approx(np.abs(a - b)[upper].mean())
    assert found.heads == 12


def test_a_matrix_agrees_with_itself():
    found = agree(matrix(), matrix())
    assert found.pearson == pytest.approx(1)
    assert found.spearman == pytest.approx(1)
    assert found.normalised == pytest.approx(1)
    assert found.mean_difference == 0
    assert found.p_value == 1 / 1000
    assert found.low == pytest.approx(1)
    assert found.high <= 1


def test_the_diagonal_does_not_count():
    a = 0.4 + 0.01 * matrix(seed=1)
    b = 0.6 + 0.01 * matrix(seed=2)
    np.fill_diagonal(a, 0)
    np.fill_diagonal(b, 0)
    found = agree(a, b)
    assert found.pearson < 0.5
    assert found.high < 0.7  # nor does a head that is drawn twice meet itself


def test_mantel_is_a_test():
    """Under chance the p-values are even; of related matrices they are small."""
    chance = [
        mantel(matrix(10, seed), matrix(10, seed + 500), permutations=99)[1] for seed in range(200)
    ]
    assert 0.02 <= np.mean(np.array(chance) <= 0.05) <= 0.1
    assert 0.4 <= np.mean(chance) <= 0.6
    base = matrix(10, 7)
    assert mantel(base, matrix(10, 8, of=base, noise=0.2))[1] <= 0.01


def test_mantel_counts_every_permutation_of_few_heads():
    # three heads: six permutations, and only the one that changes nothing does as well
    a = np.array([[0, 0.1, 0.5], [0.1, 0, 0.9], [0.5, 0.9, 0]])
    r, p = mantel(a, a, permutations=5000)
    assert r == pytest.approx(1)
    assert p == pytest.approx(1 / 6, abs=0.02)


def test_the_seed_decides():
    a, b = matrix(seed=3), matrix(seed=4)
    assert agree(a, b, seed=1) == agree(a, b, seed=1)
    assert agree(a, b, seed=1).p_value != agree(a, b, seed=2).p_value


def test_the_interval_holds_the_correlation_and_narrows_with_heads():
    widths = []
    for heads in (10, 60):
        a = matrix(heads, seed=5)
        b = matrix(heads, seed=6, of=a, noise=0.2)
        low, high = head_interval(a, b)
        assert low < agree(a, b).pearson < high
        widths.append(high - low)
    assert widths[1] < widths[0] / 2


def test_every_two_of_several():
    found = agreements({"a": matrix(seed=1), "b": matrix(seed=2), "c": matrix(seed=1)}, seed=3)
    assert list(found) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert found["a", "c"].pearson == pytest.approx(1)


@pytest.mark.parametrize(
    ("a", "b", "says"),
    [
        (matrix(5), matrix(6), "5 and 6 heads"),
        (matrix(2), matrix(2), "at least three heads"),
        (np.zeros((3, 4)), matrix(3), "heads x heads"),
        (np.full((3, 3), np.nan), matrix(3), "not finite"),
        (np.triu(matrix(4)), matrix(4), "symmetric"),
        (matrix(4) + np.eye(4), matrix(4), "zeros on its diagonal"),
        (1 - np.eye(4), matrix(4), "same distance"),
    ],
)
def test_what_cannot_be_compared_is_refused(a, b, says):
    with pytest.raises(UsageError, match=says):
        agree(a, b)


def test_a_test_without_permutations_is_refused():
    with pytest.raises(UsageError, match="at least one permutation"):
        mantel(matrix(), matrix(), permutations=0)
