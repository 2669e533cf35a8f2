from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy.stats import spearmanr

from headcount.base.errors import UsageError
from headcount.heads import Layout
from headcount.likeness.layers import (
    best_cut,
    layer_clusters,
    layer_distances,
    layer_gap,
    layers_of,
)


def by_groups(groups, heads=3, *, noise=0.02, seed=0):
    """Heads of layers in one group are at 0.2, others at 0.8."""
    rng = np.random.default_rng(seed)
    group = np.repeat(groups, heads)
    values = np.where(group[:, None] == group, 0.2, 0.8) + noise * rng.random((len(group),) * 2)
    values = np.triu(values, 1)
    return values + values.T, np.repeat(np.arange(len(groups)), heads)


def by_gap(layers=6, heads=3, noise=0.05, seed=0):
    rng = np.random.default_rng(seed)
    layer = np.repeat(np.arange(layers), heads)
    values = np.abs(layer[:, None] - layer) / layers + noise * rng.random((len(layer),) * 2)
    values = np.triu(values, 1)
    return values + values.T, layer


def test_near_layers_are_near():
    values, layers = by_gap()
    found = layer_gap(values, layers)
    assert found.gaps == (0, 1, 2, 3, 4, 5)
    assert found.counts == (18, 45, 36, 27, 18, 9)
    pairs = np.triu(np.abs(layers[:, None] - layers) == 2, 1)
    assert found.means[2] == pytest.approx(values[pairs].mean())
    assert found.spearman == spearmanr(found.gaps, found.means)[0] == pytest.approx(1)
    assert found.p_value < 0.01


def test_without_order_the_test_finds_none():
    p_values = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        values = np.triu(rng.random((12, 12)), 1)
        gap = layer_gap(values + values.T, np.repeat(range(4), 3), permutations=99)
        p_values.append(gap.p_value)
    assert np.mean(np.array(p_values) <= 0.05) <= 0.15
    assert 0.3 <= np.mean(p_values) <= 0.7


def test_distances_of_layers_leave_out_a_head_and_itself():
    values, layers = by_gap(3, 2, seed=1)
    found = layer_distances(values, layers)
    assert found[0, 0] == pytest.approx(values[0, 1])
    assert found[0, 2] == pytest.approx(values[:2, 4:].mean())
    assert np.allclose(found, found.T)


def test_one_head_in_a_layer():
    found = layer_distances([[0, 0.3], [0.3, 0]], [0, 1])
    assert found.tolist() == [[0, 0.3], [0.3, 0]]


def test_contiguous_groups_are_found_and_are_the_best_cut():
    values, layers = by_groups([0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2])
    found = layer_clusters(values, layers, 3)
    assert found.labels == (0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2)
    assert found.best_cut == found.labels
    assert found.contiguous
    assert found.adjusted_rand == 1


def test_groups_that_are_not_contiguous_are_told():
    values, layers = by_groups([0, 1, 0, 1, 0, 1])
    found = layer_clusters(values, layers, 2)
    assert found.labels == (0, 1, 0, 1, 0, 1)
    assert not found.contiguous
    assert found.adjusted_rand < 0.3
    assert (np.diff(found.best_cut) >= 0).all()


def test_the_best_cut_is_the_best_of_all():
    rng = np.random.default_rng(3)
    apart = np.triu(rng.random((8, 8)), 1)
    apart += apart.T

    def cost(bounds):
        runs = [range(a, b) for a, b in pairwise(bounds)]
        return sum(apart[np.ix_(run, run)].sum() / 2 / len(run) for run in runs)

    for count in (1, 2, 3, 5, 8):
        every = [(0, *inner, 8) for inner in combinations(range(1, 8), count - 1)]
        best = min(every, key=cost)
        wanted = np.searchsorted(best, np.arange(8), side="right") - 1
        assert best_cut(apart, count).tolist() == wanted.tolist()


def test_one_layer_is_one_cluster():
    found = layer_clusters([[0, 0.5], [0.5, 0]], [0, 0], 1)
    assert found.labels == found.best_cut == (0,)
    assert found.contiguous


def test_layers_of_a_stack():
    layout = Layout.of(encoder=[2, 1], decoder=[1, 3])
    assert layers_of(layout, "decoder").tolist() == [0, 1, 1, 1]


def test_what_makes_no_sense_is_refused():
    values, layers = by_gap(2, 2)
    with pytest.raises(UsageError, match="at least three layers"):
        layer_gap(values, layers)
    with pytest.raises(UsageError, match="4 heads, but layers for 3"):
        layer_gap(values, layers[:3])
    with pytest.raises(UsageError, match="2 layers cannot make 3 clusters"):
        layer_clusters(values, layers, 3)
