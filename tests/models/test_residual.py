from __future__ import annotations

import pytest

from headcount.models.find import sites_of
from headcount.models.residual import find_additions
from models.zoo import FAMILIES, build

SIDE_BY_SIDE = ("gpt-neox", "falcon", "falcon-alibi")
"""Attention and feed-forward are computed from the same stream and added together."""


@pytest.mark.parametrize("family", FAMILIES)
def test_every_familys_additions_are_seen_but_of_blocks_side_by_side(family):
    model = build(family)
    sites = sites_of(model)
    additions = find_additions(model, sites)
    attention = [addition.out for addition in additions if not addition.feed_forward]
    second = [addition for addition in additions if addition.feed_forward]
    if family in SIDE_BY_SIDE:
        assert additions == []
        return
    assert sorted(attention) == sorted(site.out for site in sites)
    crossed = sum(site.stack == "cross" for site in sites)
    assert len(second) == len(sites) - crossed
    # the wide end of the two is the one that goes in
    wide = {len(model.get_submodule(addition.out).weight.flatten()) for addition in second}
    assert wide == {32 * 40} or family in ("bloom", "gpt2", "gpt2-cross")
    # the feed-forward part runs behind all attention of its block
    if crossed:
        assert {a.site.stack for a in second if "decoder" in a.out} <= {"cross"}
    assert not any(module._forward_hooks for module in model.modules())


def test_residuals_are_those_of_the_architecture():
    """By hand, from the forward pass of each."""

    def named(model):
        return {a.out: a.residual for a in find_additions(model, sites_of(model))}

    bert = named(build("bert", num_hidden_layers=1))
    layer = "bert.encoder.layer.0"
    assert bert == {
        f"{layer}.attention.output.dense": f"{layer}.attention.self",
        f"{layer}.output.dense": f"{layer}.intermediate",
    }
    llama = named(build("llama", num_hidden_layers=1))
    layer = "model.layers.0"
    assert llama == {
        f"{layer}.self_attn.o_proj": f"{layer}.input_layernorm",
        f"{layer}.mlp.down_proj": f"{layer}.post_attention_layernorm",
    }
