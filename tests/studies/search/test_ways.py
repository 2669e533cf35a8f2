from __future__ import annotations

import numpy as np
import pytest

from headcount.heads import Layout, Scores, Stack
from headcount.heads.choose import keep_best
from headcount.studies.search.bracket import layer_counts
from headcount.studies.search.ways import LayerChoice, all_ways, mask_of, ways_of


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
