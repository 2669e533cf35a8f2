from __future__ import annotations

from typing import Any

import pytest

from headcount.base.errors import UsageError
from headcount.behaviour.options import RoleOptions


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"examples": -1}, "not negative: -1"),
        ({"ridge": 0.0}, "above 0, not 0.0"),
        ({"alone": True, "limit": 0}, "at least 1, not 0"),
        ({"limit": 5}, "--limit is of the rows that --alone scores"),
    ],
)
def test_wrong_values_are_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        RoleOptions(**wrong)
