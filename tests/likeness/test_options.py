from __future__ import annotations

import inspect

import pytest

import headcount as hc
from headcount.base.errors import UsageError
from headcount.base.options import types_of
from headcount.likeness.compare import compare
from headcount.likeness.distances import distances
from headcount.likeness.options import AgreementOptions, DistanceOptions
from likeness.oracles import hard_attention


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


def test_an_unknown_name_is_refused_with_a_hint():
    with pytest.raises(UsageError, match=r"no distance 'coss'\. Did you mean 'cos'"):
        distances(hard_attention(2, 3, 3), "coss")


def test_options_that_fit_nothing_are_refused():
    attention = hard_attention(2, 3, 3)
    with pytest.raises(UsageError, match="'cc', which is not among"):
        distances(attention, "js", cc={"kappa": 1})
    with pytest.raises(UsageError, match=r"'cc' has no option 'kapa'\. Did you mean 'kappa'"):
        distances(attention, "cc", cc={"kapa": 1})
    with pytest.raises(UsageError, match="at least one thread"):
        distances(attention, "js", threads=0)
