"""Layouts, masks and scores of any kind, for hypothesis."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from headcount.heads import STACKS, Layout, Mask, Scores, Stack


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
