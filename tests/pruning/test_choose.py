from __future__ import annotations

import itertools

import numpy as np
import pytest

from headcount.base.errors import UsageError
from headcount.heads import Layout, Mask, Scores, Stack
from headcount.pruning.choose import keep_best


def grouped(heads, groups, layers):
    return Layout((Stack("decoder", (heads,) * layers, (groups,) * layers, (1,) * layers),))


def scores(layout, seed=0):
    return Scores(layout, tuple(np.random.default_rng(seed).normal(size=len(layout))))


def test_without_groups_it_is_the_plain_ranking():
    given = scores(Layout.of(encoder=[5, 0, 3], decoder=[4]))
    for count in range(len(given.layout) + 1):
        assert keep_best(given, count) == given.keep_best(count)


def test_at_least_so_many_in_every_layer():
    layout = Layout.of(encoder=[4] * 4)
    given = Scores(layout, tuple(float(i) for i in range(16)))
    assert keep_best(given, 6, leave=1).pattern == "1113"
    with pytest.raises(UsageError, match=r"takes 8, a ratio of at most 0.5000"):
        keep_best(given, 7, leave=2)


def removable(mask, heads, groups, layers):
    size = heads // groups
    for layer in range(layers):
        kept = mask.indices("decoder", layer)
        counts = {sum(h // size == g for h in kept) for g in range(groups)} - {0}
        if len(counts) > 1:
            return False
    return True


@pytest.mark.parametrize("seed", range(3))
def test_grouped_heads_are_exact_removable_and_best(seed):
    """Against every mask there is, of two layers of four heads in two groups."""
    layout = grouped(4, 2, 2)
    given = scores(layout, seed)
    by_count: dict[int, float] = {}
    for size in range(9):
        for heads in itertools.combinations(layout, size):
            if removable(Mask.of(layout, heads), 4, 2, 2):
                value = sum(given[head] for head in heads)
                by_count[size] = max(by_count.get(size, -np.inf), value)
    assert 7 not in by_count
    for size, best in by_count.items():
        mask = keep_best(given, size)
        assert len(mask) == size
        assert removable(mask, 4, 2, 2)
        assert sum(given[head] for head in mask) == pytest.approx(best)
    with pytest.raises(UsageError, match=r"keep exactly 7 of 8 heads.*could keep 6 or 8"):
        keep_best(given, 7)


def test_scores_that_are_not_numbers_are_refused():
    with pytest.raises(UsageError, match="NaN"):
        keep_best(Scores(Layout.of(encoder=[2]), (1.0, float("nan"))), 1)
