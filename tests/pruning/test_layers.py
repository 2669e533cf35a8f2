from __future__ import annotations

import pytest

from headcount.base.errors import UsageError
from headcount.heads import Layout
from headcount.pruning.select import prepare


def layers(model, **options):
    return prepare(model, "layers", **options)


TWELVE = Layout.of(encoder=[1] * 12)


@pytest.mark.parametrize(
    ("empty", "pattern"),
    [
        ("top:3", "111111111000"),
        ("bottom:3", "000111111111"),
        ("top:3+bottom:3", "000111111000"),
        ("middle:4", "111100001111"),
        ("middle:6", "111000000111"),
        ("even", "010101010101"),
        ("odd", "101010101010"),
        ("top:12", "000000000000"),
        ("top:0", "111111111111"),
    ],
)
def test_which_layers(empty, pattern):
    assert layers(TWELVE, empty=empty)(None, 0).pattern == pattern


def test_stacks():
    two = Layout.of(encoder=[1] * 4, decoder=[1] * 4)
    assert layers(two, empty="top:1")(None, 0).pattern == "encoder:1110 decoder:1110"
    assert layers(two, empty="decoder=odd")(None, 0).pattern == "encoder:1111 decoder:1010"


@pytest.mark.parametrize(
    ("empty", "said"),
    [
        ("top:13", "names 13 layers; the encoder has 12"),
        ("top:8+bottom:8", "names layers twice"),
        ("upper:3", "names no layers"),
        ("top", "names no layers"),
        ("cross=top:1", "no cross heads"),
        ("encoder=top:1 encoder=odd", "twice"),
        ("", "needs layers"),
    ],
)
def test_refusals(empty, said):
    with pytest.raises(UsageError, match=said):
        layers(TWELVE, empty=empty)


def test_a_ratio_is_refused():
    with pytest.raises(UsageError, match="leave the ratio out"):
        layers(TWELVE, empty="odd")(0.5, 0)
