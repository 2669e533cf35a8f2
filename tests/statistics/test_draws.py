from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from headcount.statistics.draws import Sides, draw_sides, most_telling, row_weights, widening

WRONG, RIGHT = np.array([1.0, 0.0]), np.array([0.0, 1.0])


def share(weights: np.ndarray) -> np.ndarray:
    """(draw, 1) the share of the second of two kinds of rows."""
    return weights[:, 1:] / weights.sum(1, keepdims=True)


def first(values: np.ndarray) -> np.ndarray:
    return values[:, 0]


@pytest.mark.parametrize(("right", "n"), [(0, 8), (8, 8), (51, 60), (990, 1000)])
def test_of_a_share_it_is_the_interval_of_clopper_and_pearson(right: int, n: int) -> None:
    found = draw_sides(share, np.array([n - right, right]), WRONG, RIGHT, bootstrap=40_000)
    exact = binomtest(right, n).proportion_ci(0.95)
    assert found.interval(first) == pytest.approx([exact.low, exact.high], abs=0.006)


def loss(weights: np.ndarray) -> np.ndarray:
    """(draw, 1) rows: as they were, right before and wrong after, wrong before and right after."""
    return ((weights[:, 2] - weights[:, 1]) / weights.sum(1))[:, None]


@pytest.mark.parametrize("n", [30, 100, 1000])
def test_no_change_at_all_is_the_rule_of_three(n: int) -> None:
    worse, better = np.array([0.0, 1, 0]), np.array([0.0, 0, 1])
    found = draw_sides(loss, np.array([n, 0, 0]), worse, better, bootstrap=40_000)
    within = (found.lower[:, 0] >= -3 / n).mean()
    assert within == pytest.approx(0.95, abs=0.01)
    low, high = found.interval(first)
    # two-sided: 2.5 % on each side
    assert (-low * n, high * n) == pytest.approx((3.7, 3.7), rel=0.13)


def test_an_interval_is_of_the_lower_draws_below_and_of_the_upper_above() -> None:
    sides = Sides(np.arange(101.0)[:, None], 1000 + np.arange(101.0)[:, None])
    assert sides.interval(first) == pytest.approx((2.5, 1097.5))


def test_equal_rows_are_drawn_as_one_that_counts_as_often() -> None:
    values = np.repeat([0.0, 1.0, 5.0], [20, 30, 10])
    each = draw_sides(
        lambda weights: (weights @ values / weights.sum(1))[:, None], np.ones(60),
        np.eye(60)[0], np.eye(60)[59], bootstrap=20_000,
    )  # fmt: skip
    short = np.array([0.0, 1.0, 5.0])
    once = draw_sides(
        lambda weights: (weights @ short / weights.sum(1))[:, None], np.array([20, 30, 10]),
        np.eye(3)[0], np.eye(3)[2], bootstrap=20_000,
    )  # fmt: skip
    assert once.interval(first) == pytest.approx(each.interval(first), abs=0.02)


def test_the_same_seed_draws_the_same() -> None:
    counts = np.array([3, 5])
    one, same, other = (
        draw_sides(share, counts, WRONG, RIGHT, bootstrap=9, seed=seed) for seed in (3, 3, 4)
    )
    assert (one.lower == same.lower).all()
    assert (one.upper == same.upper).all()
    assert (one.lower != other.lower).all()


def test_weights_come_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = np.concatenate(list(row_weights(np.ones(12), 10, 0)))
    assert whole.mean() == pytest.approx(1, abs=0.3)
    assert (np.concatenate(list(row_weights(np.array([0, 4]), 10, 0)))[:, 0] == 0).all()
    monkeypatch.setattr("headcount.statistics.draws.LARGEST", 3 * 12)
    pieces = list(row_weights(np.ones(12), 10, 0))
    assert [len(piece) for piece in pieces] == [3, 3, 3, 1]
    assert (np.concatenate(pieces) == whole).all()


def test_the_most_telling_rows_are_those_at_the_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.array([1.0, 9.0, -4.0, 2.0, 0.5])

    def mean(weights: np.ndarray) -> np.ndarray:
        return weights @ values / weights.sum(1)

    for largest in (4_000_000, 10):  # whole, and in pieces of two rows
        monkeypatch.setattr("headcount.statistics.draws.LARGEST", largest)
        lower, upper = most_telling(mean, np.ones(5))
        assert (lower.tolist(), upper.tolist()) == ([0, 0, 1, 0, 0], [0, 1, 0, 0, 0])
    # unseen rows first: nothing else stands for what was not seen
    lower, upper = most_telling(mean, np.array([1, 1, 1, 0, 0]))
    assert (lower.tolist(), upper.tolist()) == ([0, 0, 0, 0, 1], [0, 0, 0, 1, 0])
    monkeypatch.setattr("headcount.statistics.draws.CANDIDATES", 3)
    assert most_telling(mean, np.ones(5))[0].tolist() == [0, 0, 1, 0, 0]


def test_few_numbers_are_wider_spread_than_their_draws() -> None:
    assert [round(widening(n), 2) for n in (8, 60, 10_000)] == [1.28, 1.03, 1.0]
    assert math.isnan(widening(1))
