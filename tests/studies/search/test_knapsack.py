"""Against brute force over all combinations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from headcount.studies.search import knapsack as module
from headcount.studies.search.knapsack import knapsack


def brute(layers, limit):
    """The least loss of any combination that fits; None where none does."""
    losses = [
        sum(loss for _, loss in ways)
        for ways in itertools.product(*layers)
        if sum(cost for cost, _ in ways) <= limit
    ]
    return min(losses) if losses else None


def drawn(seed, layers=4, heads=5, *, whole=True):
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(layers):
        costs = np.cumsum(rng.integers(0, 9, heads + 1)) if whole else np.cumsum(rng.random(heads))
        losses = np.sort(rng.random(len(costs)))[::-1]
        found.append([(float(c), float(x)) for c, x in zip(costs, losses, strict=True)])
    return found


@pytest.mark.parametrize("seed", range(25))
def test_whole_costs_are_solved_exactly(seed):
    layers = drawn(seed)
    most = sum(ways[-1][0] for ways in layers)
    for share in (0.0, 0.2, 0.5, 0.8, 1.0):
        limit = share * most
        chosen, wanted = knapsack(layers, limit), brute(layers, limit)
        if wanted is None:
            assert chosen is None
            continue
        assert chosen is not None
        took = [ways[number] for ways, number in zip(layers, chosen, strict=True)]
        assert sum(cost for cost, _ in took) <= limit
        assert sum(loss for _, loss in took) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_measured_costs_fit_and_are_as_good_up_to_rounding(seed):
    layers = drawn(seed, whole=False)
    limit = 0.6 * sum(ways[-1][0] for ways in layers)
    chosen = knapsack(layers, limit)
    assert chosen is not None
    took = [ways[number] for ways, number in zip(layers, chosen, strict=True)]
    assert sum(cost for cost, _ in took) <= limit
    assert sum(loss for _, loss in took) <= brute(layers, limit * 0.999)
    assert sum(loss for _, loss in took) >= brute(layers, limit) - 1e-12


def test_costs_are_rounded_up_so_that_they_fit(monkeypatch):
    monkeypatch.setattr(module, "UNITS", 10)
    layers = [[(0.0, 1.0), (0.19, 0.0)]] * 10  # nearly two units each
    chosen = knapsack(layers, 1.0)
    assert chosen is not None
    assert sum(chosen) == 5
    assert sum(layers[0][number][0] for number in chosen) <= 1.0


def test_what_does_not_fit_is_said():
    assert knapsack([[(2, 0.0)], [(3, 0.0)]], 4) is None
    assert knapsack([[(2, 0.0)]], -1) is None
    assert knapsack([], 4) == []
    assert knapsack([[(float("inf"), 0.0), (1.5, 2.0)]], 4) == [1]
