from __future__ import annotations

import json
import math
import pickle
from dataclasses import FrozenInstanceError
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headcount.errors import UsageError
from headcount.heads import STACKS, Head, Layout, Mask, Scores, Stack, read_counts, write_counts

# --- anything that can be drawn ---


@st.composite
def stacks(draw: st.DrawFn, name: str) -> Stack:
    heads = draw(st.lists(st.integers(0, 14), max_size=5))
    groups = [
        draw(st.sampled_from([g for g in range(1, count + 1) if count % g == 0])) if count else 0
        for count in heads
    ]
    uses = draw(st.lists(st.integers(1, 3), min_size=len(heads), max_size=len(heads)))
    return Stack(name, tuple(heads), tuple(groups), tuple(uses))


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    names = draw(st.sets(st.sampled_from(STACKS), min_size=1))
    return Layout(tuple(draw(stacks(name)) for name in STACKS if name in names))


@st.composite
def masks(draw: st.DrawFn, layout: Layout | None = None) -> Mask:
    layout = draw(layouts()) if layout is None else layout
    bits = draw(st.integers(0, 2 ** len(layout) - 1))  # one draw: quicker than one per head
    return Mask.of(layout, [head for at, head in enumerate(layout) if bits >> at & 1])


@st.composite
def several_masks(draw: st.DrawFn) -> tuple[Mask, Mask, Mask]:
    layout = draw(layouts())
    return draw(masks(layout)), draw(masks(layout)), draw(masks(layout))


@st.composite
def scores(draw: st.DrawFn) -> Scores:
    layout = draw(layouts())
    numbers = st.floats(allow_nan=False)
    values = draw(st.lists(numbers, min_size=len(layout), max_size=len(layout)))
    return Scores(layout, tuple(values))


def by_json(value: Any) -> Any:
    again = type(value).from_json(json.loads(json.dumps(value.to_json())))
    # A file written with sorted keys has its stacks in another order, and means the same.
    assert type(value).from_json(json.loads(json.dumps(value.to_json(), sort_keys=True))) == again
    return again


BERT = Layout.of(encoder=[12] * 12)
TWO = Layout.of(encoder=[2, 3])

# --- layouts ---


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


# --- how many stay at a ratio ---


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


# --- masks are sets ---


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


# --- patterns ---


@given(masks())
def test_a_pattern_reads_back_to_its_counts(mask: Mask) -> None:
    again = Mask.parse(mask.pattern, mask.layout)
    assert again.counts() == mask.counts()
    assert again.pattern == mask.pattern
    for stack, layer, _ in again.layout.layers():  # the first heads stay
        kept = again.indices(stack, layer)
        assert kept == tuple(range(len(kept)))


@given(st.lists(st.integers(0, 30), max_size=14))
def test_counts_read_back(counts: list[int]) -> None:
    assert read_counts(write_counts(counts)) == counts


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("777322", [7, 7, 7, 3, 2, 2]),
        ("12x8", [8] * 12),
        ("1x12", [12]),
        ("12", [1, 2]),
        ("1,2", [1, 2]),
        ("12,", [12]),
        ("12,10,7", [12, 10, 7]),
        ("12,10,7,", [12, 10, 7]),
        ("0", [0]),
        ("", []),
    ],
)
def test_ways_to_write_counts(text: str, counts: list[int]) -> None:
    assert read_counts(text) == counts


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


# --- masks that cannot be ---


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


# --- scores ---


@given(scores())
def test_scores_go_through_json(found: Scores) -> None:
    assert by_json(found) == found


@given(scores())
def test_ranks_rise_and_cover_every_head(found: Scores) -> None:
    ranked = found.ranked()
    assert sorted(ranked) == sorted(found.layout)
    values = [found[head] for head in ranked]
    assert values == sorted(values)
    order = {head: at for at, head in enumerate(found.layout)}
    for one, other in pairwise(ranked):
        assert found[one] < found[other] or order[one] < order[other]


@given(scores(), st.data())
def test_the_best_are_no_worse_than_the_rest(found: Scores, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, len(found.layout)))
    mask = found.keep_best(count)
    assert len(mask) == count
    if 0 < count < len(found.layout):
        assert min(found[head] for head in mask) >= max(found[head] for head in mask.dropped)
        assert mask <= found.keep_best(count + 1)


def test_scores_by_head_and_layer() -> None:
    found = Scores(TWO, (1, 2, 3, 4, 5))
    assert found[Head("encoder", 1, 0)] == found[("encoder", 1, 0)] == 3
    assert found.by_layer() == {"encoder": [[1, 2], [3, 4, 5]]}
    assert repr(found) == "Scores(5 heads; lowest encoder.0.0 1, highest encoder.1.2 5)"
    assert repr(Scores(Layout(()), ())) == "Scores(no heads)"
    numbers = Scores(TWO, np.arange(1, 6, dtype=np.float32))
    assert numbers == found
    assert json.dumps(numbers.to_json()) == json.dumps(Scores(TWO, (1.0, 2, 3, 4, 5)).to_json())


@pytest.mark.parametrize("count", [-1, 6])
def test_the_best_of_too_many_are_refused(count: int) -> None:
    with pytest.raises(UsageError, match=f"Cannot keep {count} of 5"):
        Scores(TWO, (1, 2, 3, 4, 5)).keep_best(count)


def test_scores_that_are_not_numbers_cannot_be_ranked() -> None:
    found = Scores(TWO, (1, math.nan, 3, 4, 5))
    with pytest.raises(UsageError, match="NaN"):
        found.ranked()
    with pytest.raises(UsageError, match="NaN"):
        found.keep_best(1)


@pytest.mark.parametrize("head", [("encoder", 0, 2), ("decoder", 0, 0), ("encoder", 0)])
def test_there_is_no_score_for_a_head_that_is_not_there(head: Any) -> None:
    with pytest.raises(UsageError, match=r"no head|not a head"):
        Scores(TWO, (1, 2, 3, 4, 5))[head]


def test_scores_of_another_number_are_refused() -> None:
    with pytest.raises(UsageError, match="4 scores for 5 heads"):
        Scores(TWO, (1, 2, 3, 4))
    with pytest.raises(UsageError, match="numbers"):
        Scores(TWO, (1, 2, 3, 4, "x"))


@pytest.mark.parametrize(
    "values",
    [
        None,
        {},
        [[1, 2], [3, 4, 5]],
        {"encoder": [[1, 2]]},
        {"encoder": [[1, 2], [3, 4]]},
        {"encoder": [[1, 2], [3, 4, 5, 6]]},
        {"encoder": [[1, 2], [3, 4, "x"]]},
        {"encoder": [[1, 2], [3, 4, None]]},
        {"decoder": [[1, 2], [3, 4, 5]]},
        {"encoder": [[1, 2], [3, 4, 5], []]},
    ],
)
def test_what_are_not_scores_is_refused(values: Any) -> None:
    with pytest.raises(UsageError):
        Scores.from_json({"layout": TWO.to_json(), "scores": values})
