from __future__ import annotations

import json
import pickle
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headcount.base.errors import UsageError
from headcount.heads import Head, Layout, Mask
from heads.drawn import BERT, TWO, by_json, layouts, masks, several_masks


@given(several_masks())
def test_masks_follow_the_laws_of_sets(three: tuple[Mask, Mask, Mask]) -> None:
    a, b, c = three
    full, none = Mask.full(a.layout), Mask.none(a.layout)
    assert a | b == b | a
    assert a & b == b & a
    assert (a | b) | c == a | (b | c)
    assert (a & b) & c == a & (b & c)
    assert a & (b | c) == (a & b) | (a & c)
    assert a | (b & c) == (a | b) & (a | c)
    assert ~(a | b) == ~a & ~b
    assert ~~a == a
    assert a | ~a == full
    assert a & ~a == none
    assert a - b == a & ~b
    assert a ^ b == (a | b) - (a & b)
    assert a | none == a
    assert a & full == a
    assert none <= a & b <= a <= a | b <= full
    assert (a <= b) == (a | b == b)


@given(several_masks())
def test_keep_and_drop_are_union_and_difference(three: tuple[Mask, Mask, Mask]) -> None:
    a, b, _ = three
    assert a.keep(b) == a | b
    assert a.drop(b) == a - b
    assert a.keep(tuple(head) for head in b) == a | b
    assert Mask.none(a.layout).keep(a) == a == Mask.full(a.layout).drop(a.dropped)


@given(masks())
def test_a_mask_counts_its_heads(mask: Mask) -> None:
    kept, dropped = list(mask), list(mask.dropped)
    assert sorted([*kept, *dropped]) == sorted(mask.layout)
    assert len(mask) == len(kept) == sum(sum(counts) for counts in mask.counts().values())
    assert all(head in mask for head in kept)
    assert not any(head in mask for head in dropped)
    assert kept == [head for head in mask.layout if head in mask]
    assert kept == [
        Head(stack, layer, index)
        for stack, layer, _ in mask.layout.layers()
        for index in mask.indices(stack, layer)
    ]
    assert mask.sparsity == (len(dropped) / len(mask.layout) if len(mask.layout) else 0)
    assert 0 <= mask.sparsity <= 1


def test_any_integers_name_a_head() -> None:
    mask = Mask.of(TWO, [("encoder", np.int64(1), np.int32(2))])
    assert mask.kept == {Head("encoder", 1, 2)}
    assert repr(next(iter(mask.kept))) == "Head(stack='encoder', layer=1, index=2)"


def test_a_mask_is_always_true_even_when_it_keeps_nothing() -> None:
    assert Mask.none(TWO)


def test_a_mask_is_frozen_hashable_and_readable() -> None:
    mask = Mask.full(BERT).drop([Head("encoder", 0, 3), ("encoder", 11, 0)])
    assert hash(mask) == hash(~~mask)
    assert mask.sparsity == 2 / 144
    assert repr(mask) == (
        "Mask(encoder: 11,12,12,12,12,12,12,12,12,12,12,11; keeps 142 of 144 heads)"
    )
    assert str(Head("encoder", 0, 3)) == "encoder.0.3"
    with pytest.raises(FrozenInstanceError):
        mask.kept = frozenset()


@given(masks())
def test_masks_go_through_json_and_pickle(mask: Mask) -> None:
    assert by_json(mask) == mask
    assert pickle.loads(pickle.dumps(mask)) == mask
    assert Mask.from_json(mask.to_json(), mask.layout) == mask
    assert Mask.parse(json.dumps(mask.to_json()), mask.layout) == mask


@given(masks())
def test_a_pattern_reads_back_to_its_counts(mask: Mask) -> None:
    again = Mask.parse(mask.pattern, mask.layout)
    assert again.counts() == mask.counts()
    assert again.pattern == mask.pattern
    for stack, layer, _ in again.layout.layers():  # the first heads stay
        kept = again.indices(stack, layer)
        assert kept == tuple(range(len(kept)))


def test_one_layer_of_twelve_is_not_two_layers() -> None:
    one = Mask.full(Layout.of(encoder=[12]))
    two = Mask.parse("12", Layout.of(encoder=[12, 12]))
    assert one.pattern == "12,"
    assert two.counts() == {"encoder": (1, 2)}
    with pytest.raises(UsageError, match="'12' counts 2 layers; the encoder has 1"):
        Mask.parse("12", one.layout)


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("encoder:21 decoder:10", "encoder:21 decoder:10"),
        ("decoder:10 encoder:21", "encoder:21 decoder:10"),
        ("decoder:10", "encoder:23 decoder:10"),
        ("encoder: 21  decoder: 10", "encoder:21 decoder:10"),
        (" encoder:2x1 ", "encoder:11 decoder:11"),
        ("encoder:2,1 decoder:0,0", "encoder:21 decoder:00"),
    ],
)
def test_patterns_of_several_stacks(text: str, pattern: str) -> None:
    assert Mask.parse(text, Layout.of(encoder=[2, 3], decoder=[1, 1])).pattern == pattern


@pytest.mark.parametrize(
    ("text", "layout", "why"),
    [
        ("2", TWO, "counts 1 layers; the encoder has 2"),
        ("33", TWO, "keeps 3 heads in encoder layer 0, which has 2"),
        ("2x", TWO, "is not heads per layer; write 777322"),
        ("-1,2", TWO, "is not heads per layer"),
        ("two", TWO, "is not heads per layer"),
        ("", TWO, "counts 0 layers"),
        ("{", TWO, "not JSON"),
        ("{}", TWO, "not a mask"),
        ("decoder:22", TWO, "no decoder heads"),
        ("encodr:22", TWO, "Did you mean 'encoder'"),
        ("encoder:22 11", TWO, "'11'"),
        ("encoder:22 encoder:11", TWO, "twice"),
        ("22", Layout.of(encoder=[2, 2], decoder=[2]), "2 stacks; write encoder:"),
        (json.dumps(Mask.full(BERT).to_json()), TWO, "another layout"),
    ],
)
def test_a_pattern_that_makes_no_sense_is_refused(text: str, layout: Layout, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        Mask.parse(text, layout)
    assert why in str(caught.value)


@given(st.text(st.sampled_from("0123456789x,: {}encodr\n"), max_size=20), layouts())
def test_any_text_is_a_mask_or_refused(text: str, layout: Layout) -> None:
    assume(not any(len(part) > 4 for part in text.split("x")))  # 99999x1 is long to count
    try:
        found = Mask.parse(text, layout).layout
    except UsageError:
        found = layout
    assert found == layout


@pytest.mark.parametrize(
    "heads",
    [
        [("encoder", 0, 2)],
        [("encoder", 2, 0)],
        [("encoder", 0, -1)],
        [("encoder", -1, 0)],
        [("decoder", 0, 0)],
        [("encoder", "0", 0)],
        [("encoder", 0, 0.5), ("encoder", 0, "x"), ("decoder", None, 1)],
    ],
)
def test_heads_out_of_range_are_refused(heads: Any) -> None:
    for make in (lambda h: Mask.of(TWO, h), Mask.full(TWO).keep, Mask.full(TWO).drop):
        with pytest.raises(UsageError, match=r"encoder|decoder"):
            make(heads)


@pytest.mark.parametrize("head", ["encoder.0.1", ("encoder", 0), 3, None, ("encoder", 0, 0, 0)])
def test_what_is_not_a_head_is_refused(head: Any) -> None:
    for make in (lambda h: Mask.of(TWO, h), Mask.full(TWO).keep, Mask.full(TWO).drop):
        with pytest.raises(UsageError, match="is not a head"):
            make([head])


def test_a_long_list_of_strange_heads_is_shortened() -> None:
    with pytest.raises(UsageError, match=r"encoder\.2\.0, encoder\.2\.1, encoder\.2\.2 and 2 more"):
        Mask.of(TWO, [("encoder", 2, index) for index in range(5)])


def test_masks_of_different_layouts_do_not_mix() -> None:
    one, other = Mask.full(TWO), Mask.full(BERT)
    for combine in ("__or__", "__and__", "__sub__", "__xor__"):
        with pytest.raises(UsageError, match="different layouts"):
            getattr(one, combine)(other)
    assert not one <= other
    assert one != other


@pytest.mark.parametrize("layer", [-1, 2, 99])
def test_a_layer_that_is_not_there_has_no_heads_to_ask_for(layer: int) -> None:
    with pytest.raises(UsageError, match="2 layers"):
        Mask.full(TWO).indices("encoder", layer)


def test_a_mask_for_another_model_is_refused() -> None:
    with pytest.raises(UsageError, match="another layout"):
        Mask.from_json(Mask.full(BERT).to_json(), TWO)


@pytest.mark.parametrize(
    "kept",
    [
        None,
        [],
        {"encoder": None},
        {"encoder": [[0]]},  # a layer is missing
        {"encoder": [[0], [0], [0]]},
        {"encoder": [[0], [3]]},
        {"encoder": [[0], [-1]]},
        {"encoder": [[0], ["a"]]},
        {"encoder": [[0], [[0]]]},
        {"encoder": [[0], 1]},
        {},
        {"encoder": [[0], [0]], "decoder": []},
    ],
)
def test_what_is_not_a_mask_is_refused(kept: Any) -> None:
    with pytest.raises(UsageError):
        Mask.from_json({"layout": TWO.to_json(), "kept": kept})
