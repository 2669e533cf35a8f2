from __future__ import annotations

import math
from typing import Any

import pytest

from headcount.base.errors import UsageError
from headcount.costs.shapes import check_timing, shapes_of, unlisted


def test_every_combination_once() -> None:
    assert shapes_of(8, None) == [(8, None)]
    assert shapes_of((1, 8, 1), [32, 128]) == [(1, 32), (1, 128), (8, 32), (8, 128)]


@pytest.mark.parametrize(
    ("batch", "length", "said"),
    [
        (0, None, "A batch is at least 1 example, not 0"),
        ([8, -1], None, "not -1"),
        (8, 0, "A length is at least 1 token, not 0"),
        ((), 8, "--batch is a number or several, and none was given"),
        (8, [], "--length is a number or several"),
    ],
)
def test_sizes_that_cannot_be_are_refused(batch: Any, length: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        shapes_of(batch, length)


@pytest.mark.parametrize("seconds", [-1.0, math.inf, math.nan])
def test_a_time_that_does_not_end_is_refused(seconds: float) -> None:
    check_timing(0)
    with pytest.raises(UsageError, match="--timing-seconds is a time of 0 seconds or more"):
        check_timing(seconds)


def test_a_list_of_one_is_a_number() -> None:
    assert [unlisted(sizes) for sizes in ((8,), [8], 8, None)] == [8, 8, 8, None]
    assert unlisted([1, 8]) == (1, 8)
