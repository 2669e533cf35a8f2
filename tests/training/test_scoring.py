from __future__ import annotations

import pytest

from headcount.base.errors import UsageError
from headcount.training.scoring import Scoring


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"bootstrap": -1}, "resamples is not negative: -1"),
        ({"max_length": 1}, "at least 2, not 1"),
        ({"limit": 0}, "at least 1, not 0"),
        ({"limit": 1.5}, "at most 1, not 1.5"),
        ({"limit": 0.0}, "above 0"),
    ],
)
def test_what_cannot_be_scored_is_refused(wrong: dict, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Scoring(**wrong)


def test_a_share_and_a_number_are_both_limits() -> None:
    assert Scoring(limit=1.0).limit == 1.0
    assert Scoring(limit=1).limit == 1
    assert Scoring() == Scoring(split=None, limit=None, seed=0, bootstrap=1000, max_length=128)
