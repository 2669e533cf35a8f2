from __future__ import annotations

import inspect

import pytest

import headcount as hc
from headcount.base.errors import UsageError
from headcount.base.options import types_of
from headcount.likeness.compare import compare
from headcount.likeness.options import AgreementOptions, DistanceOptions


@pytest.mark.parametrize(
    ("options", "function"), [(DistanceOptions, hc.redundancy), (AgreementOptions, compare)]
)
def test_the_functions_have_the_same_options_and_defaults(options, function):
    taken = inspect.signature(function).parameters
    for name in types_of(options):
        assert taken[name].default == getattr(options(), name), name


def test_wrong_values():
    with pytest.raises(UsageError, match="There is no distance 'jss'"):
        DistanceOptions(distances=("jss",))
    with pytest.raises(UsageError, match="above 0, not -1"):
        DistanceOptions(tolerance=-1)
