from __future__ import annotations

import pytest

from headcount.base.errors import UsageError
from headcount.tasks.calibration import Calibration


def test_at_least_one_row_is_looked_at() -> None:
    assert Calibration(samples=1).rows is None
    with pytest.raises(UsageError, match="at least one calibration row"):
        Calibration(samples=0)
