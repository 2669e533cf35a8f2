from __future__ import annotations

import pytest

from headcount.heads import Layout, Mask
from headcount.models.find import layout
from headcount.pruning.all_heads import AllHeads
from headcount.pruning.methods import MethodInputs, make_method, name_of
from models.zoo import build


def test_every_head_stays_whatever_is_asked():
    plain = Layout.of(encoder=[2, 3], cross=[4])
    decide = AllHeads().prepare(plain, MethodInputs())
    for ratio, seed in ((None, 0), (0.5, 1), (1.0, 2)):
        decision = decide(ratio, seed)
        assert decision.mask == Mask.full(plain)
        assert (decision.model, decision.learned) == (None, None)


@pytest.mark.parametrize("family", ["bert", "t5"])
def test_a_model_is_its_layout(family):
    model = build(family)
    assert AllHeads().prepare(model, MethodInputs())(None, 0).mask == Mask.full(layout(model))


def test_it_is_named_and_says_itself_how_many_stay():
    method = make_method("all-heads")
    assert isinstance(method, AllHeads)
    assert (name_of(method), method.needs, method.ratio) == ("all-heads", "nothing", "none")
