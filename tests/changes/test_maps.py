from __future__ import annotations

import json

import numpy as np
import pytest

from headcount.base.errors import UsageError
from headcount.changes.maps import AttentionMaps, HeadUse, Tokens
from headcount.heads import Head, Layout, Mask

LAYOUT = Layout.of(encoder=[2, 1], cross=[1])
A, B, C, X = LAYOUT


def full(rows: list[list[float]]) -> np.ndarray:
    return np.array(rows, dtype=np.float32)


def made() -> AttentionMaps:
    own = full([[0, 1, 0], [0, 1, 0], [0, 0.5, 0.5]])
    even = full([[1 / 3] * 3] * 3)
    nowhere = full([[0, 0, 0], [0, 0, 1], [0, 0, 1]])  # the first token sees nothing
    across = full([[1, 0, 0], [0.5, 0.5, 0]])
    mask = Mask(LAYOUT, frozenset([A, C, X]))
    return AttentionMaps(
        layout=LAYOUT,
        tokens={
            "encoder": Tokens(("a", "b", "c"), ("a", "b", "c")),
            "cross": Tokens(("x", "y"), ("a", "b", "c")),
        },
        before={HeadUse(A): own, HeadUse(B): even, HeadUse(C): nowhere, HeadUse(X): across},
        after={HeadUse(A): own[::-1].copy(), HeadUse(C): nowhere, HeadUse(X): across},
        mask=mask,
        text="a b c",
        cut=2,
    )


def test_what_each_head_does() -> None:
    rows = {(row["stack"], row["layer"], row["head"]): row for row in made().rows()}
    own = rows["encoder", 0, 0]
    assert own["entropy"] == pytest.approx(1 / 3)
    assert own["distance"] == pytest.approx((1 + 0 + 0.5) / 3)
    assert own["most_attended"] == {"token": "b", "position": 1, "share": pytest.approx(5 / 6)}
    # rows 0 and 2 changed places: half of each row's mass moved, in two of three rows
    p, q = np.array([1, 0]), np.array([0.5, 0.5])
    middle = (p + q) / 2
    by_hand = 0.5 * np.log2(1 / middle[0]) + 0.5 * (q * np.log2(q / middle)).sum()
    assert own["divergence"] == pytest.approx(2 * by_hand / 3)
    even = rows["encoder", 0, 1]
    assert even["entropy"] == pytest.approx(np.log2(3))
    assert even["distance"] == pytest.approx((0 + 1 + 2 + 1 + 0 + 1 + 2 + 1 + 0) / 9)
    assert (even["after"], even["divergence"]) == (None, None)
    blind = rows["encoder", 1, 0]
    assert blind["entropy"] == 0
    assert blind["distance"] == pytest.approx(0.5)  # over the two rows that look somewhere
    assert blind["divergence"] == 0
    cross = rows["cross", 0, 0]
    assert cross["distance"] is None
    assert cross["most_attended"]["token"] == "a"


def test_some_of_the_maps() -> None:
    maps = made()
    assert list(maps.only(stack="cross").before) == [HeadUse(X)]
    assert list(maps.only(stack="cross").tokens) == ["cross"]
    assert [run.head for run in maps.only(heads=[1]).before] == [B]
    few = maps.only(stack="encoder", layers=[1], heads=[0])
    assert list(few.before) == list(few.after or ()) == [HeadUse(C)]
    assert list(maps.only().before) == list(maps.before)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"layers": [2]}, "no layer 2: this model's heads per layer are encoder 21, cross 1"),
        ({"layers": [-1]}, "no layer -1"),
        ({"heads": [2]}, "no head 2"),
        ({"layers": [1], "heads": [1]}, "no head 1"),
        ({"stack": "decoder"}, "decoder"),
        ({"stack": "encodr"}, "Did you mean 'encoder'"),
    ],
)
def test_what_is_not_there(asked: dict, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        made().only(**asked)


def test_a_stack_that_the_text_does_not_reach() -> None:
    maps = AttentionMaps(
        layout=LAYOUT,
        tokens={"encoder": Tokens(("a",), ("a",))},
        before={HeadUse(Head("encoder", 0, 0)): full([[1.0]])},
    )
    with pytest.raises(UsageError, match="does not reach the cross heads"):
        maps.only(stack="cross")


def test_json() -> None:
    found = json.loads(json.dumps(made().to_json()))
    assert (found["cut"], found["kept"]) == (2, "encoder:11 cross:1")
    assert found["tokens"]["cross"] == {"queries": ["x", "y"], "keys": ["a", "b", "c"]}
    assert len(found["heads"]) == 4
