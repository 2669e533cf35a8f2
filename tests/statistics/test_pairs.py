from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from headcount.statistics.pairs import paired, power_of, seeds_needed, sign_flips


def test_pairs_are_those_of_the_same_seed() -> None:
    one, other = {0: 0.9, 1: 0.8, 2: 0.7, 9: 5.0}, {2: 0.4, 1: 0.6, 0: 0.5, 7: 1.0}
    found = paired(one, other)
    wanted = stats.ttest_rel([0.9, 0.8, 0.7], [0.5, 0.6, 0.4])
    assert found["seeds"] == 3
    assert found["mean"] == pytest.approx(0.3)
    assert found["p"] == pytest.approx(wanted.pvalue)
    assert found["p_flips"] == 2 / 8
    assert paired({0: 1.0, 1: 2.0}, {0: 1.0, 1: 2.0})["p"] == 1
    assert paired({0: 2.0, 1: 3.0}, {0: 1.0, 1: 2.0})["p"] == 0
    assert math.isnan(paired({0: 1.0}, {0: 0.0})["p"])
    assert paired({0: 1.0}, {1: 1.0})["seeds"] == 0


def flipped(differences: list[float]) -> float:
    """Every way to flip signs, one by one."""
    seen, ways, extreme = abs(sum(differences)), 0, 0
    for signs in product((1, -1), repeat=len(differences)):
        ways += 1
        total = abs(sum(sign * each for sign, each in zip(signs, differences, strict=True)))
        extreme += total >= seen - 1e-9
    return extreme / ways


@pytest.mark.parametrize("n", [1, 2, 5, 8, 12])
def test_all_flips_of_few_differences(n: int) -> None:
    differences = np.random.default_rng(n).normal(0.7, size=n).tolist()
    assert sign_flips(differences) == pytest.approx(flipped(differences), abs=1e-12)


def test_flips_of_many_differences_are_drawn() -> None:
    differences = np.random.default_rng(0).normal(0.6, size=13).tolist()
    found = sign_flips(differences)
    assert found == pytest.approx(flipped(differences), abs=0.004)
    assert found == sign_flips(differences)
    assert found != sign_flips(differences, seed=1)
    assert sign_flips([1.0] * 40) == 1 / 10_000  # the one that was seen is one of them


def test_differences_that_cancel_or_are_none() -> None:
    assert sign_flips([0.0, 0.0, 0.0]) == 1
    assert sign_flips([0.1, 0.1, 0.1 + 1e-17]) == 0.25  # rounding is no difference
    assert math.isnan(sign_flips([]))
    assert math.isnan(sign_flips([0.1, math.nan]))


@pytest.mark.parametrize(("effect", "seeds", "alpha"), [(1.0, 10, 0.05), (0.4, 30, 0.01)])
def test_power_is_how_often_scipys_test_sees_it(effect: float, seeds: int, alpha: float) -> None:
    drawn = np.random.default_rng(0).normal(effect, 1.0, (20_000, seeds))
    seen = stats.ttest_1samp(drawn, 0, axis=1).pvalue < alpha
    assert power_of(effect, seeds, alpha) == pytest.approx(seen.mean(), abs=0.01)


@pytest.mark.parametrize(("mean", "spread"), [(0.02, 0.02), (-0.5, 1.0), (3.0, 2.0)])
def test_the_fewest_seeds_that_see_a_difference(mean: float, spread: float) -> None:
    n = seeds_needed(mean, spread)
    assert n is not None
    rng = np.random.default_rng(1)

    def power(seeds: int) -> float:
        drawn = rng.normal(mean, spread, (40_000, seeds))
        return float((stats.ttest_1samp(drawn, 0, axis=1).pvalue < 0.05).mean())

    assert power(n) > 0.79
    assert power(n - 1) < 0.81
    assert seeds_needed(mean, spread, alpha=0.05 / 18) > n
    assert seeds_needed(mean, spread, power=0.9) > n


def test_where_seeds_cannot_be_said() -> None:
    assert seeds_needed(0.0, 1.0) is None
    assert seeds_needed(math.nan, 1.0) is None
    assert seeds_needed(0.5, math.nan) is None  # one seed
    assert seeds_needed(1e-12, 1.0) is None  # rounding
    assert seeds_needed(0.5, 0.0) == 2
    assert seeds_needed(100.0, 1.0) == 2
    large = ((stats.norm.isf(0.025) + stats.norm.isf(0.2)) / 0.001) ** 2  # where t is normal
    assert seeds_needed(0.001, 1.0) == pytest.approx(large, rel=1e-4)
