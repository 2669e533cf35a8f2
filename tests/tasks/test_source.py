from __future__ import annotations

import pytest

from headcount.base.errors import UsageError
from headcount.tasks.source import make_source


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("pos", "named as in pos=POSITIVE, not 'pos'"),
        ("=1", "not '=1'"),
        ("poss=1", r"no label 'poss'. Did you mean 'pos'\? It has: neg, pos"),
        (["pos=1", "neg=1"], "'1' is named twice"),
        (["pos=1", "pos=0"], "'pos' is named twice"),
    ],
)
def test_wrong_names_of_labels(labels: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_source(labels=labels).called(("neg", "pos"))


def test_names_of_labels() -> None:
    assert make_source(labels={"a=b": 1}).called(("a=b",)) == (("a=b", "1"),)
    assert make_source(labels=["pos=Good one"]).called(("pos",)) == (("pos", "Good one"),)
    assert make_source().called(("pos",)) == ()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"window": 1}, "at least 2 tokens, not 1"),
        ({"window": 8, "stride": 9}, "at most the window: 9 tokens of 8"),
        ({"window": 8, "stride": 0}, "at least 1"),
        ({"stride": 0}, "at least 1 and at most the window: 0 tokens of none"),
    ],
)
def test_bad_windows(settings: dict[str, int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_source(**settings)
