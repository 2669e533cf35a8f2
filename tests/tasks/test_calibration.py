from __future__ import annotations

import pytest

from headcount.base.errors import UsageError
from headcount.tasks.calibration import Calibration


def test_at_least_one_row_is_looked_at() -> None:
    assert Calibration(samples=1).inputs is None
    with pytest.raises(UsageError, match="At least one row is looked at, not 0"):
        Calibration(samples=0)
