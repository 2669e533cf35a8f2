from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

import headcount as hc
from headcount.base.errors import UsageError
from headcount.heads import Layout, Mask, Scores, Stack
from headcount.heads.choose import keep_best, random_mask
from models.zoo import build


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


@pytest.mark.parametrize("ratio", [0, 0.1, 0.5, 0.75, 0.9, 1])
def test_random_masks_drop_exactly_what_was_asked(ratio: float) -> None:
    layout = Layout.of(encoder=[12] * 12, cross=[3, 0, 5], decoder=[7])
    mask = random_mask(layout, ratio, seed=0)
    assert len(mask) == layout.kept_at(ratio)


def test_random_masks_follow_the_seed() -> None:
    layout = Layout.of(encoder=[12] * 12)
    one, two, three = (random_mask(layout, 0.5, seed) for seed in (0, 0, 1))
    assert one == two != three


@pytest.mark.parametrize("ratio", [0.2, 0.5, 0.9])
def test_random_masks_can_be_removed_where_heads_share_keys(ratio: float) -> None:
    model = build("llama", num_attention_heads=8, num_key_value_heads=2, head_dim=4)
    layout = hc.layout(model)
    mask = random_mask(layout, ratio, seed=0)
    assert len(mask) == layout.kept_at(ratio)
    for layer in range(4):
        groups = Counter(head // 4 for head in mask.indices("decoder", layer))
        assert len(set(groups.values())) <= 1  # as many in each group that stays
    hc.remove(model, mask)


def test_the_method_random_draws_the_same_mask() -> None:
    layout = Layout.of(encoder=[12] * 12, decoder=[7])
    assert random_mask(layout, 0.3, seed=5) == hc.select(layout, "random", 0.3, seed=5)


@pytest.mark.parametrize("ratio", [-0.1, 1.1, float("nan")])
def test_a_ratio_outside_0_to_1_is_refused(ratio: float) -> None:
    with pytest.raises(UsageError, match="between 0 and 1"):
        random_mask(Layout.of(encoder=[4]), ratio, 0)
