from __future__ import annotations

import json

import pytest

from headcount.base.errors import UsageError
from headcount.heads import Layout, Mask
from headcount.models.find import layout
from headcount.pruning.methods import MethodInputs, make_method, name_of
from headcount.pruning.pattern import AllHeads
from headcount.pruning.select import prepare
from models.zoo import build


def pattern(model, **options):
    return prepare(model, "pattern", **options)


SIX = Layout.of(encoder=[8] * 6)
THREE = Layout.of(encoder=[8] * 6, cross=[8] * 6, decoder=[8] * 6)


def test_heads_per_layer_of_each_stack():
    decide = pattern(THREE, keep="encoder:777322 decoder:223777")
    assert decide(None, 0).pattern == "encoder:777322 cross:888888 decoder:223777"
    assert decide(None, 0) != decide(None, 1)
    assert decide(None, 5) == decide(None, 5)


def test_the_first_heads():
    assert pattern(SIX, keep="111111", pick="first")(None, 7).indices("encoder", 3) == (0,)


def test_a_mask_keeps_exactly_its_heads():
    mask = Mask.parse("222222", SIX).drop([("encoder", 0, 0)])
    decide = pattern(SIX, keep=json.dumps(mask.to_json()))
    assert decide(None, 0) == decide(None, 1) == mask


def test_heads_per_component():
    counts = pattern(THREE, keep="14,31,30")(None, 0).counts()
    assert [sum(c) for c in counts.values()] == [14, 31, 30]
    counts = pattern(THREE, keep="cross=3")(None, 0).counts()
    assert [sum(c) for c in counts.values()] == [48, 3, 48]


@pytest.mark.parametrize(
    ("layout", "keep", "said"),
    [
        (SIX, "777329", "keeps 9 heads in encoder layer 5, which has 8"),
        (SIX, "77732", "counts 5 layers; the encoder has 6"),
        (SIX, "encoder:777322 cross:777322", "no cross heads"),
        (SIX, "cross=14", "no cross heads"),
        (SIX, "encodr=14", "Did you mean 'encoder'"),
        (SIX, "many", "not heads per layer"),
        (SIX, "", "needs heads to keep"),
        (THREE, "14,31", "counts 2 components; this model has 3"),
        (THREE, "14,31,49", "keeps 49 heads in the decoder, which has 48"),
        (THREE, "14,31,x", "not heads per component"),
        (THREE, "cross=3 cross=4", "twice"),
    ],
)
def test_refusals(layout, keep, said):
    with pytest.raises(UsageError, match=said):
        pattern(layout, keep=keep)


def test_a_ratio_or_a_strange_pick_is_refused():
    with pytest.raises(UsageError, match="leave the ratio out"):
        pattern(SIX, keep="777322")(0.5, 0)
    with pytest.raises(UsageError, match="Did you mean 'first'"):
        pattern(SIX, keep="777322", pick="firs")


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
