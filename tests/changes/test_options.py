from __future__ import annotations

from pathlib import Path

import pytest

from headcount.base.errors import UsageError
from headcount.changes.options import DriftOptions, Sentence


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"recall": True}, "pass --task and --pretraining-task"),
        ({"pretraining_data": Path("x")}, "goes with --pretraining-task"),
        ({"share": 1.5}, "above 0 and at most 1, not 1.5"),
        ({"points": 0}, "At least one number of heads"),
        ({"limit": 0}, "at least 1, not 0"),
        ({"importance_samples": 0}, "at least 1, not 0"),
        ({"normalize": "l3"}, "none, l1 or l2"),
    ],
)
def test_wrong_values_between_checkpoints(wrong, said):
    with pytest.raises(UsageError, match=said):
        DriftOptions(**wrong)


def test_wrong_values_of_a_text():
    with pytest.raises(UsageError, match="Did you mean 'encoder'"):
        Sentence(stack="encodr")
    with pytest.raises(UsageError, match="at least 2, not 1"):
        Sentence(max_length=1)
