from __future__ import annotations

import inspect

import pytest

import headcount as hc
from headcount.base.errors import UsageError
from headcount.base.options import types_of
from headcount.likeness.compare import compare
from headcount.likeness.options import Agreeing, Likening


@pytest.mark.parametrize(("options", "function"), [(Likening, hc.redundancy), (Agreeing, compare)])
def test_the_functions_have_the_same_options_and_defaults(options, function):
    taken = inspect.signature(function).parameters
    for name in types_of(options):
        assert taken[name].default == getattr(options(), name), name


def test_wrong_values():
    with pytest.raises(UsageError, match="There is no distance 'jss'"):
        Likening(distances=("jss",))
    with pytest.raises(UsageError, match="above 0, not -1"):
        Likening(tolerance=-1)
