from __future__ import annotations

import pytest

from headcount.base.errors import UsageError
from headcount.repair.recover import Recover


def test_what_cannot_be_is_refused():
    assert Recover(ridge=0.0, tokens=1).ridge == 0
    for wrong, words in [
        ({"ridge": -1.0}, "not negative: -1"),
        ({"ridge": float("nan")}, "not negative: nan"),
        ({"tokens": 0}, "at least one token, not 0"),
        ({"target": "bias"}, "The target is output or stream, not 'bias'"),
        ({"hold_back": 1.0}, "above 0 and below 1, not 1.0"),
        ({"path_rank": -1}, "not negative: -1"),
        ({"path_rank": 4, "scales": True}, "there is no path"),
        ({"linear": True, "scales": True}, "there is no path"),
    ]:
        with pytest.raises(UsageError, match=words):
            Recover(**wrong)
