from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.base.errors import UsageError
from headcount.heads import Head, Layout, Scores
from heads.drawn import TWO, by_json, scores


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
