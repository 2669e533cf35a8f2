from __future__ import annotations

from pathlib import Path

import pytest

from headcount.base.errors import UsageError
from headcount.tasks.calibration import COUNT, Calibration, InputOptions


def test_at_least_one_row_is_looked_at() -> None:
    assert Calibration(samples=1).rows is None
    with pytest.raises(UsageError, match="at least one calibration row"):
        Calibration(samples=0)
    with pytest.raises(UsageError, match="at least one calibration token"):
        Calibration(tokens=0)
    with pytest.raises(UsageError, match="counted in rows or in tokens"):
        Calibration(samples=100, tokens=5)


def test_how_many_inputs_are_made_and_looked_at():
    assert (InputOptions().count, InputOptions().most) == (COUNT, COUNT)
    assert (InputOptions(samples=7).count, InputOptions(samples=7).most) == (7, 7)
    assert (InputOptions(random=2000).count, InputOptions(random=2000).most) == (2000, 2000)
    both = InputOptions(random=20, samples=7)
    assert (both.count, both.most) == (20, 7)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"rows": Path("a"), "random": 3}, "not both"),
        ({"random": 0}, "The number of random rows is at least 1"),
        ({"samples": 0}, "The number of inputs is at least 1"),
        ({"max_length": 1}, "at least 2, not 1"),
    ],
)
def test_wrong_values(wrong, said):
    with pytest.raises(UsageError, match=said):
        InputOptions(**wrong)
