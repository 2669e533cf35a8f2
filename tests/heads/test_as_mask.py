from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given

from headcount.base.errors import NotFoundError, UsageError
from headcount.heads import Head, Layout, Mask, Scores, Stack
from headcount.heads.as_mask import as_mask
from heads.drawn import masks

ONE = Layout.of(encoder=[4, 4])
BOTH = Layout.of(encoder=[2, 2], decoder=[2])
GONE = Mask.full(ONE).drop([("encoder", 0, 1), ("encoder", 0, 3)])
ROWS = [[1, 0, 1, 0], [1, 1, 1, 1]]


@pytest.mark.parametrize(
    "form",
    [
        GONE,
        {0: [1, 3]},
        {"0": (3, 1, 1)},
        {np.int64(0): {1, 3}, 1: []},
        {0: torch.tensor([1, 3])},
        {0: np.array([1, 3])},
        {"encoder": {0: [1, 3]}},
        {"encoder": ROWS},
        ROWS,
        [[True, False, True, False], (1.0, 1, 1, 1)],
        torch.tensor(ROWS),
        torch.tensor(ROWS, dtype=torch.bfloat16, requires_grad=True),
        torch.tensor(ROWS).bool(),
        np.array(ROWS),
        list(torch.tensor(ROWS)),
        GONE.to_json(),
        json.dumps(GONE.to_json()),
    ],
)
def test_what_people_have_is_the_same_mask(form) -> None:
    assert as_mask(form, ONE) == GONE


def test_counts_keep_the_first_heads_and_nothing_to_remove_keeps_all() -> None:
    assert as_mask("24", ONE) == Mask.parse("24", ONE)
    assert as_mask({}, ONE) == as_mask({1: []}, ONE) == Mask.full(ONE)


def test_a_mask_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mask.json"
    file.write_text(json.dumps(GONE.to_json()))
    assert as_mask(file, ONE) == as_mask(str(file), ONE) == GONE
    with pytest.raises(NotFoundError, match=r"other\.json"):
        as_mask(tmp_path / "other.json", ONE)


def test_stacks_are_named_where_there_are_several() -> None:
    wanted = Mask.full(BOTH).drop([("encoder", 1, 0), ("decoder", 0, 1)])
    assert as_mask({"encoder": {1: [0]}, "decoder": {0: [1]}}, BOTH) == wanted
    assert as_mask({"encoder": [[1, 1], [0, 1]], "decoder": torch.tensor([[1, 0]])}, BOTH) == wanted
    for form in ({1: [0]}, [[1, 1], [0, 1]], torch.ones(2, 2)):
        with pytest.raises(UsageError, match=r"2 stacks \(encoder, decoder\): say which is meant"):
            as_mask(form, BOTH)


@given(masks())
def test_the_table_of_any_mask_reads_back(mask: Mask) -> None:
    table = {
        stack.name: [
            [int(Head(stack.name, layer, i) in mask) for i in range(count)]
            for layer, count in enumerate(stack.heads)
        ]
        for stack in mask.layout.stacks
    }
    assert as_mask(table, mask.layout) == mask
    gone: dict[str, dict[int, list[int]]] = {name: {} for name in table}
    for head in mask.dropped:
        gone[head.stack].setdefault(head.layer, []).append(head.index)
    assert as_mask(gone, mask.layout) == mask


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ([("encoder", 0, 1)], "does not say whether they stay or go"),
        (Scores(ONE, (0.0,) * 8), "scores.keep_best"),
        (5, "not 5"),
        (None, "not None"),
        ({0: 1}, "of layer 0 are a list, not 1"),
        ({0: "13"}, "are a list, not '13'"),
        ({0: [True, False, True, True]}, "True is not a head of encoder layer 0"),
        ({0: [4]}, "4 is not a head of encoder layer 0: they are numbered from 0 to 3"),
        ({0: [-1]}, "-1 is not a head"),
        ({2: [0]}, "2 is not a layer of the encoder"),
        ({0: [1.5]}, "1.5 is not a head"),
        ({"decoder": {0: [1]}}, "no decoder heads"),
        ({"kept": [1]}, "not a mask"),
        ([1, 0, 1, 0], "2 layers with a 0 or 1 for every head, not 4 rows"),
        (torch.ones(4), "has 1 axis"),
        (torch.ones(2, 1, 4), "has 3 axes"),
        ([[0, 2], [1]], "encoder layer 0 has 4 heads, and its row in the mask is"),
        ([[1, 0.5, 1, 1], [1, 1, 1, 1]], "not 0.5 .encoder layer 0."),
        ("999", "counts 3 layers"),
    ],
)
def test_what_is_no_mask_or_two_is_refused(form, says) -> None:
    with pytest.raises(UsageError, match=says):
        as_mask(form, ONE)


def test_numbers_of_heads_are_ambiguous_where_some_were_removed_before() -> None:
    left = Layout((Stack("encoder", (2, 4), (2, 4), (1, 1), ((1, 3), (0, 1, 2, 3))),))
    assert as_mask({1: [0]}, left).counts() == {"encoder": (2, 3)}
    assert as_mask([[0, 1], [1, 1, 1, 1]], left).indices("encoder", 0) == (1,)
    with pytest.raises(UsageError, match=r"layer 0 has lost heads before: .* old or a new number"):
        as_mask({0: [1]}, left)
