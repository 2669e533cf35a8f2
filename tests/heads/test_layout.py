from __future__ import annotations

import json
import math
import pickle
from dataclasses import FrozenInstanceError
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.base.errors import UsageError
from headcount.heads import STACKS, Head, Layout, Stack
from heads.drawn import BERT, TWO, by_json, layouts


def test_a_layout_reads_like_a_sentence() -> None:
    llama = Layout((Stack("decoder", (8, 8), (2, 2), (1, 1)),))
    albert = Layout((Stack("encoder", (12,), (12,), (6,)),))
    assert repr(BERT) == "Layout(encoder: 12 layers x 12 heads)"
    assert repr(llama) == "Layout(decoder: 2 layers x 8 heads, 2 key-value heads)"
    assert repr(albert) == "Layout(encoder: 1 layer x 12 heads, shared: each used 6 times)"
    assert repr(Layout.of(encoder=[2, 3], decoder=[1, 1])) == (
        "Layout(encoder: 2 layers x (23) heads; decoder: 2 layers x 1 head)"
    )


@given(layouts())
def test_a_layout_lists_each_of_its_heads_once(layout: Layout) -> None:
    heads = list(layout)
    assert len(heads) == len(set(heads)) == len(layout) == sum(s.total for s in layout.stacks)
    assert all(head in layout and tuple(head) in layout for head in heads)
    assert all(Head(head.stack, np.int64(head.layer), head.index) in layout for head in heads)
    assert heads == sorted(heads, key=lambda head: (STACKS.index(head.stack), *head[1:]))
    assert [(s, i, n) for s, i, n in layout.layers() for _ in range(n)] == [
        (head.stack, head.layer, layout[head.stack].heads[head.layer]) for head in heads
    ]


@given(layouts())
def test_a_head_just_outside_is_not_in_the_layout(layout: Layout) -> None:
    for name in STACKS:
        here = layout[name].heads if name in layout else ()
        for layer, count in enumerate(here):
            assert Head(name, layer, count) not in layout
            assert Head(name, layer, -1) not in layout
            assert Head(name, layer - len(here), 0) not in layout
        assert Head(name, len(here), 0) not in layout
    assert Head("encoder", "0", 0) not in layout
    assert ("encoder", 0) not in layout


@given(layouts())
def test_layouts_go_through_json_and_pickle(layout: Layout) -> None:
    assert by_json(layout) == layout
    assert pickle.loads(pickle.dumps(layout)) == layout
    assert hash(by_json(layout)) == hash(layout)


def test_a_layout_is_frozen_and_counts_any_integers() -> None:
    with pytest.raises(FrozenInstanceError):
        BERT.stacks = ()
    counted = Layout.of(encoder=np.array([2, 3]))
    assert counted == TWO
    assert json.dumps(counted.to_json()) == json.dumps(TWO.to_json())
    assert hash(Stack("encoder", [2], [2], [1])) == hash(Stack("encoder", (2,), (2,), (1,)))


def test_stacks_come_in_order_whatever_the_order_given() -> None:
    layout = Layout.of(decoder=[1], encoder=[2], cross=[3])
    assert [stack.name for stack in layout.stacks] == list(STACKS)
    assert layout["cross"].heads == (3,)
    assert "cross" in layout
    assert "cross" not in TWO


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Layout.of(encodr=[1]), "no stack 'encodr'. Did you mean 'encoder'?"),
        (lambda: Layout.of(encoder=[-1]), "negative"),
        (lambda: Layout.of(encoder=[1.5]), "whole numbers"),
        (lambda: Layout.of(encoder=["2"]), "whole numbers"),
        (lambda: Stack("middle", (1,), (1,), (1,)), "no stack 'middle'"),
        (lambda: Stack("encoder", (1, 2), (1,), (1,)), "two ways"),
        (lambda: Stack("encoder", (6,), (4,), (1,)), "6 heads do not share 4"),
        (lambda: Stack("encoder", (6,), (0,), (1,)), "6 heads do not share 0"),
        (lambda: Stack("encoder", (0,), (1,), (1,)), "0 heads do not share 1"),
        (lambda: Stack("encoder", (1,), (1,), (0,)), "0 times"),
        (lambda: Layout((TWO["encoder"], TWO["encoder"])), "named twice"),
        (
            lambda: Layout((Layout.of(decoder=[1])["decoder"], TWO["encoder"])),
            "order encoder, cross, decoder",
        ),
        (lambda: TWO["decoder"], "no decoder heads. It has: encoder"),
        (lambda: TWO["encode"], "Did you mean 'encoder'"),
    ],
)
def test_an_impossible_layout_is_refused(make: Any, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        make()
    assert why in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [
        [],
        3,
        None,
        {"encoder": [2, 2]},
        {"encoder": {"heads": [2], "groups": [2]}},
        {"encoder": {"heads": [2.5], "groups": [2.5], "uses": [1]}},
        {"encoder": {"heads": ["2"], "groups": ["2"], "uses": [1]}},
        {"encoder": {"heads": 2, "groups": 2, "uses": 1}},
        {"encoder": None},
        {"nowhere": {"heads": [2], "groups": [2], "uses": [1]}},
    ],
)
def test_what_is_not_a_layout_is_refused(data: Any) -> None:
    with pytest.raises(UsageError):
        Layout.from_json(data)


@given(st.integers(0, 2000), st.data())
def test_removing_k_of_n_keeps_exactly_the_rest(total: int, data: st.DataObject) -> None:
    gone = data.draw(st.integers(0, total))
    assert Layout.of(encoder=[total]).kept_at(gone / total if total else 0) == total - gone


@given(st.integers(0, 2000), st.integers(0, 1000))
def test_a_ratio_in_decimals_is_meant_as_written(total: int, mille: int) -> None:
    exact = math.ceil(total * (1 - Fraction(mille, 1000)))
    assert Layout.of(encoder=[total]).kept_at(mille / 1000) == exact


@given(st.integers(0, 500), st.floats(0, 1), st.floats(0, 1))
def test_a_higher_ratio_never_keeps_more(total: int, one: float, other: float) -> None:
    layout = Layout.of(encoder=[total])
    low, high = sorted([one, other])
    assert 0 <= layout.kept_at(high) <= layout.kept_at(low) <= total


@pytest.mark.parametrize("ratio", [-0.1, 1.1, math.nan, math.inf])
def test_a_ratio_that_is_none_is_refused(ratio: float) -> None:
    with pytest.raises(UsageError, match="between 0 and 1"):
        BERT.kept_at(ratio)


@pytest.mark.parametrize("ratio", ["0.5", True, [0.5], None, "x" * 500, 1j])
def test_a_ratio_is_a_number(ratio: Any) -> None:
    with pytest.raises(UsageError, match="is a number between 0 and 1, not") as refusal:
        Layout.of(encoder=[2]).kept_at(ratio)
    assert len(str(refusal.value)) < 150
