from __future__ import annotations

import pytest

from headcount.base.errors import UsageError
from headcount.studies.search.options import SearchOptions


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ({"held_out": 0.0}, "between 0 and 1, not 0.0"),
        ({"held_out": 1.0}, "between 0 and 1"),
        ({"confidence": 1.0}, "The confidence is between 0 and 1"),
        ({"seeds": 0}, "--seeds is at least 1"),
        ({"first_rows": 0}, "--first-rows is at least 1"),
        ({"batch": 0}, "A batch is at least 1"),
        ({"repeats": 5}, "--repeats is at least 6"),
        ({"batch": (8, 0)}, "at least 1 example, not 0"),
        ({"length": 0}, "at least 1 token, not 0"),
        ({"timing_seconds": -1}, "--timing-seconds is a time of 0"),
    ],
)
def test_wrong_options(option, problem) -> None:
    with pytest.raises(UsageError, match=problem):
        SearchOptions(**option)


@pytest.mark.parametrize("confidence", [0.01, 0.5, 0.9, 0.99])
def test_what_is_asked_for_is_among_what_is_undecided(confidence: float) -> None:
    low, high = SearchOptions(confidence=confidence).undecided
    assert low < confidence < high
    assert low <= 0.05
    assert high >= 0.95
