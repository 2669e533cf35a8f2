from __future__ import annotations

import pytest

from headcount.base.errors import UsageError
from headcount.likeness.distances import distances
from likeness.oracles import hard_attention


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
