from __future__ import annotations

import inspect

import pytest

import headcount as hc
from headcount.base.errors import UsageError
from headcount.base.options import types_of
from headcount.sensitivity.options import GradientOptions


def test_the_function_has_the_same_options_and_defaults():
    taken = inspect.signature(hc.importance).parameters
    for name in types_of(GradientOptions):
        assert taken[name].default == getattr(GradientOptions(), name), name


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"normalize": "l3"}, "none, l1 or l2, not 'l3'"),
        ({"samples": 0}, "at least 1, not 0"),
        ({"max_length": 1}, "at least 2, not 1"),
    ],
)
def test_wrong_values(wrong, said):
    with pytest.raises(UsageError, match=said):
        GradientOptions(**wrong)
