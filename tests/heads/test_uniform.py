"""As many key-value heads in every layer of a stack, by brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from headcount.base.errors import UsageError
from headcount.heads import Head, Layout, Mask, Scores, Stack
from headcount.heads.choose import random_scores
from headcount.heads.uniform import is_uniform, keep_uniform, kept_at, level_for, levels, total_of

SMOL = Layout((Stack("decoder", (9,) * 4, (3,) * 4, (1,) * 4),))
QUERY = Layout((Stack("decoder", (4,) * 3, (1,) * 3, (1,) * 3),))
TWO = Layout.of(encoder=[4] * 2, decoder=[8] * 3)


def drawn(layout: Layout, seed: int = 0) -> Scores:
    return random_scores(layout, np.random.default_rng(seed))


@pytest.mark.parametrize(
    ("layout", "counts"),
    [(SMOL, [12, 24, 36]), (QUERY, [3, 6, 9, 12]), (Layout.of(encoder=[2, 2]), [2, 4])],
)
def test_the_numbers_that_can_stay(layout, counts):
    assert [total_of(layout, level) for level in levels(layout)] == counts


def test_stacks_lose_the_same_share():
    found = [(level["encoder"], level["decoder"]) for level in levels(TWO)]
    assert found[0] == ((1, 1), (1, 1))
    assert ((2, 1), (4, 1)) in found
    assert found[-1] == ((4, 1), (8, 1))


def test_no_more_goes_than_was_asked():
    assert [kept_at(SMOL, ratio, uniform=True) for ratio in (0, 0.3, 1 / 3, 0.5, 2 / 3, 0.9)] == [
        36, 36, 24, 24, 12, 12,
    ]  # fmt: skip
    assert kept_at(SMOL, 0.5, uniform=False) == 18


@pytest.mark.parametrize("layout", [SMOL, QUERY, TWO])
def test_the_best_of_each_layer_by_brute_force(layout):
    scores = drawn(layout)
    values = dict(scores.items())
    for level in levels(layout):
        mask = keep_uniform(scores, level)
        assert is_uniform(mask)
        assert len(mask) == total_of(layout, level)
        for stack in layout.stacks:
            groups, inside = level[stack.name]
            size = stack.heads[0] // stack.groups[0]
            for layer in range(len(stack.heads)):
                ways = [
                    sum(ways, ())
                    for chosen in itertools.combinations(range(stack.groups[0]), groups)
                    for ways in itertools.product(
                        *[
                            itertools.combinations(range(g * size, (g + 1) * size), inside)
                            for g in chosen
                        ]
                    )
                ]
                worth = [sum(values[Head(stack.name, layer, h)] for h in way) for way in ways]
                assert mask.indices(stack.name, layer) == ways[int(np.argmax(worth))]


def test_what_is_uniform():
    assert is_uniform(Mask.full(SMOL))
    assert is_uniform(Mask.none(SMOL))
    assert is_uniform(Mask.parse("6666", SMOL))
    assert not is_uniform(Mask.parse("6663", SMOL))
    assert not is_uniform(Mask.parse("9990", SMOL))
    # as many heads, but two of one key-value head and one of the next
    other = [("decoder", layer, head) for layer in range(4) for head in (0, 1, 3)]
    assert not is_uniform(Mask.of(SMOL, other))


def test_uneven_layers_are_refused():
    with pytest.raises(UsageError, match=r"the encoder have different numbers of heads \(\[4, 3\]"):
        level_for(Layout.of(encoder=[4, 3]), 2)
    with pytest.raises(UsageError, match="start from the model that has all heads"):
        levels(Layout.of(encoder=[0, 0]))
