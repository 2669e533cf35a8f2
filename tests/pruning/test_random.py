from __future__ import annotations

import numpy as np
import pytest

from headcount.base.errors import UsageError
from headcount.heads import Layout, Stack
from headcount.pruning.select import prepare


def random(model, **options):
    return prepare(model, "random", **options)


THREE = Layout.of(encoder=[8] * 6, cross=[8] * 6, decoder=[8] * 6)


def test_one_head_left_everywhere():
    mask = random(THREE, leave=1)(None, 0)
    assert mask.pattern == "encoder:111111 cross:111111 decoder:111111"
    assert mask.sparsity == 0.875
    assert random(THREE, leave=1)(0.87, 0).sparsity == 1 - 19 / 144
    assert min(min(c) for c in random(THREE, leave=1)(0.87, 0).counts().values()) == 1


def test_more_than_leaving_one_allows_is_refused():
    with pytest.raises(UsageError, match=r"takes 18, a ratio of at most 0\.8750"):
        random(THREE, leave=1)(0.9, 0)


def test_one_stack_alone():
    mask = random(THREE, stack="cross")(0.5, 1)
    assert {name: sum(counts) for name, counts in mask.counts().items()} == {
        "encoder": 48,
        "cross": 24,
        "decoder": 48,
    }
    with pytest.raises(UsageError, match="no cross heads"):
        random(Layout.of(encoder=[4]), stack="cross")


def test_each_head_is_as_likely_as_the_others():
    decide = random(Layout.of(encoder=[6] * 4))
    kept = np.zeros((4, 6))
    for seed in range(2000):
        for head in decide(0.75, seed):
            kept[head.layer, head.index] += 1
    assert abs(kept / 2000 - 0.25).max() < 0.05  # five standard errors


def test_equal_shares_are_not_always_the_first_layers():
    decide = random(Layout.of(encoder=[4] * 4), within="layer")
    assert len({decide(0.4, seed).pattern for seed in range(9)}) > 1


def test_groups_of_heads_stay_removable():
    layout = Layout((Stack("decoder", (8,) * 4, (2,) * 4, (1,) * 4),))
    for ratio in (0.2, 0.5, 0.7):
        assert len(random(layout)(ratio, 0)) == layout.kept_at(ratio)


def test_refusals():
    with pytest.raises(UsageError, match="needs a ratio"):
        random(THREE)(None, 0)
    with pytest.raises(UsageError, match="not negative"):
        random(THREE, leave=-1)
