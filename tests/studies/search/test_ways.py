from __future__ import annotations

import itertools

import numpy as np
import pytest

from headcount.heads import Layout, Scores, Stack
from headcount.heads.choose import keep_best
from headcount.studies.search import ways as module
from headcount.studies.search.bracket import layer_counts
from headcount.studies.search.ways import LayerChoice, all_ways, knapsack, mask_of, ways_of


def test_heads_go_in_the_order_of_the_path_and_costs_add_up():
    path, costs = [2, 0, 3, 1], [0.1, 0.2, 0.4, 0.8]
    found = ways_of(4, 4, path, costs)
    assert [way.heads for way in found] == [(), (1,), (1, 3), (0, 1, 3), (0, 1, 2, 3)]
    for way in found:
        gone = len(path) - len(way.heads)
        assert way.loss == pytest.approx(sum(costs[:gone]))
        assert way.groups == len(way.heads)


def test_grouped_heads_can_be_removed_and_groups_are_counted():
    path = np.random.default_rng(0).permutation(6).tolist()
    costs = np.sort(np.random.default_rng(1).random(6))
    price = dict(zip(path, costs, strict=True))
    for way in ways_of(6, 2, path, costs):
        inside = [sum(head // 3 == group for head in way.heads) for group in range(2)]
        assert len({count for count in inside if count}) <= 1  # whole, or as many in each
        assert way.groups == sum(count > 0 for count in inside)
        for group, count in enumerate(inside):  # of every group the last on the path
            own = [head for head in path if head // 3 == group]
            assert count == 0 or set(own[-count:]) <= set(way.heads)
        gone = [price[head] for head in range(6) if head not in way.heads]
        assert way.loss == pytest.approx(sum(gone))
    assert {len(way.heads) for way in ways_of(6, 2, path, costs)} == set(layer_counts(6, 2))


def test_the_last_on_the_path_stay_as_in_a_plain_cut():
    layout = Layout((Stack("encoder", (5,), (5,), (1,)),))
    path = [3, 1, 0, 4, 2]
    scores = Scores(layout, tuple(float(path.index(head)) for head in range(5)))
    for way in ways_of(5, 5, path, [1.0] * 5):
        assert mask_of(layout, {("encoder", 0): way}) == keep_best(scores, len(way.heads))


def test_a_layer_without_heads_has_one_way():
    layout = Layout((Stack("encoder", (0, 2), (0, 2), (1, 1)),))
    found = all_ways(layout, {("encoder", 1): ([0, 1], np.array([0.5, 1.0]))})
    assert found["encoder", 0] == [LayerChoice(heads=(), groups=0, loss=0.0)]
    assert [way.loss for way in found["encoder", 1]] == [1.5, 0.5, 0.0]


def test_whole_groups_stay_or_go():
    layout = Layout((Stack("decoder", (6, 0), (3, 0), (1, 1)),))
    found = all_ways(layout, {("decoder", 0): ([1, 2, 0], [0.1, 0.4, 0.9])}, whole_groups=True)
    assert [way.heads for way in found["decoder", 0]] == [
        (), (0, 1), (0, 1, 4, 5), (0, 1, 2, 3, 4, 5),
    ]  # fmt: skip
    assert [way.groups for way in found["decoder", 0]] == [0, 1, 2, 3]
    assert [way.loss for way in found["decoder", 0]] == pytest.approx([1.4, 0.5, 0.1, 0])
    assert found["decoder", 1] == [LayerChoice(heads=(), groups=0, loss=0.0)]


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
