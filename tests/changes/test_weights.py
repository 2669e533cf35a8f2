"""Weight change against slices written by hand, family by family."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import ResNetConfig, ResNetModel

from headcount.base.errors import UnsupportedError, UsageError
from headcount.changes.weights import fused_order, spread, weight_change
from headcount.heads import Head, Mask
from headcount.models.find import layout
from headcount.models.remove import remove
from models.zoo import build, mixed

D = 8  # the width of a head everywhere in the zoo


def rows(layer, start):
    return (layer.weight.T if type(layer).__name__ == "Conv1D" else layer.weight)[start : start + D]


def bert(model, stack, layer, head):
    own = model.bert.encoder.layer[layer].attention.self
    return [rows(getattr(own, name), head * D) for name in ("query", "key", "value")]


def albert(model, stack, layer, head):
    own = model.albert.encoder.albert_layer_groups[layer].albert_layers[0].attention
    return [rows(getattr(own, name), head * D) for name in ("query", "key", "value")]


def gpt2(model, stack, layer, head):
    fused = model.transformer.h[layer].attn.c_attn
    return [rows(fused, start * 32 + head * D) for start in range(3)]


def gpt2_cross(model, stack, layer, head):
    if stack == "decoder":
        return gpt2(model, stack, layer, head)
    own = model.transformer.h[layer].crossattention
    return [rows(own.q_attn, head * D), *(rows(own.c_attn, s * 32 + head * D) for s in range(2))]


def neox(model, stack, layer, head):
    fused = model.gpt_neox.layers[layer].attention.query_key_value
    return [rows(fused, head * 3 * D + part * D) for part in range(3)]


def falcon(model, stack, layer, head):  # 2 groups of 2 heads: q q k v
    fused = model.transformer.h[layer].self_attention.query_key_value
    group = head // 2 * 4 * D
    return [rows(fused, group + place * D) for place in (head % 2, 2, 3)]


def llama(model, stack, layer, head):
    own = model.model.layers[layer].self_attn
    return [rows(own.q_proj, head * D), *(rows(x, head // 2 * D) for x in (own.k_proj, own.v_proj))]


def t5(model, stack, layer, head):
    block = (model.encoder if stack == "encoder" else model.decoder).block[layer].layer
    own = block[1].EncDecAttention if stack == "cross" else block[0].SelfAttention
    return [rows(x, head * D) for x in (own.q, own.k, own.v)]


def marian(model, stack, layer, head):
    side = model.model.encoder if stack == "encoder" else model.model.decoder
    own = side.layers[layer]
    own = own.encoder_attn if stack == "cross" else own.self_attn
    return [rows(x, head * D) for x in (own.q_proj, own.k_proj, own.v_proj)]


BY_HAND = {
    "bert": bert, "albert": albert, "gpt2": gpt2, "gpt2-cross": gpt2_cross, "gpt-neox": neox,
    "falcon": falcon, "llama": llama, "t5": t5, "marian": marian,
}  # fmt: skip


def by_hand(family, before, after, head):
    slices = zip(BY_HAND[family](before, *head), BY_HAND[family](after, *head), strict=True)
    return [(b - a).detach().double().abs() for a, b in slices]


@pytest.mark.parametrize("family", BY_HAND)
def test_it_is_the_mean_of_the_slices(family):
    before, after = build(family), build(family, seed=1)
    found = weight_change(before, after)
    for head in layout(before):
        parts = by_hand(family, before, after, head)
        assert found.total[head] == pytest.approx(float(torch.cat(parts).mean()), rel=1e-6)
        for name, part in zip("qkv", parts, strict=True):
            assert found.parts[name][head] == pytest.approx(float(part.mean()), rel=1e-6)


@pytest.mark.parametrize(
    ("family", "order"),
    [("gpt2", "qkv"), ("gpt-neox", "grouped"), ("bloom", "grouped"), ("falcon-alibi", "grouped")],
)
def test_the_order_of_a_fused_projection_is_found_by_trial(family, order):
    model = build(family)
    assert fused_order(model) == order
    pruned = remove(model, mixed(layout(model)))
    assert fused_order(pruned) == order
    assert fused_order(model, pruned) == order


def test_one_head_moved_is_one_head_changed():
    before = build("bert")
    after = copy.deepcopy(before)
    with torch.no_grad():
        after.bert.encoder.layer[2].attention.self.value.weight[D : 2 * D] += 0.5
        after.bert.encoder.layer[2].attention.self.value.bias += 9  # biases are not weights here
    found = weight_change(before, after)
    assert dict(found.total.items())[Head("encoder", 2, 1)] == pytest.approx(0.5 / 3, rel=1e-5)
    assert sum(value != 0 for value in found.total.values) == 1
    assert found.layers["encoder"] == pytest.approx([0, 0, 0.5 / 12, 0], rel=1e-5)
    assert found.spread["encoder"] == pytest.approx(4)


def test_a_group_that_moved_changes_each_of_its_heads():
    before = build("llama")
    after = copy.deepcopy(before)
    with torch.no_grad():
        after.model.layers[0].self_attn.k_proj.weight[:D] += 0.3
    found = weight_change(before, after)
    assert found.parts["k"].by_layer()["decoder"][0] == pytest.approx([0.3, 0.3, 0, 0], rel=1e-5)


@pytest.mark.parametrize("family", ["bert", "llama", "gpt2", "t5"])
def test_identical_models_do_not_change(family):
    model = build(family)
    found = weight_change(model, copy.deepcopy(model))
    assert set(found.total.values) == {0.0}
    assert set(found.spread.values()) == {0.0}


@pytest.mark.parametrize("family", ["bert", "llama", "gpt2", "falcon", "t5"])
def test_pruned_models_and_what_they_were_pruned_from(family):
    before, after = build(family), build(family, seed=1)
    mask = mixed(layout(before))
    small = remove(after, mask)
    whole = weight_change(before, after)
    expected = [whole.total[head] for head in layout(before) if head in mask.kept]
    both = weight_change(remove(before, mask), small)
    one = weight_change(before, small)
    for found in (both, one):
        assert found.total.values == pytest.approx(expected, rel=1e-6)
        assert found.total.layout.stacks[0].heads == layout(small).stacks[0].heads
    empty = [np.isnan(mean) for mean in both.layers[layout(before).stacks[0].name]]
    assert empty == [True, False, False, False]
    assert not np.isnan(both.spread["all"])


def test_models_that_lost_different_heads_are_refused():
    model = build("bert")
    heads = layout(model)
    mask = mixed(heads)
    other = Mask.of(heads, {*mask.kept, ("encoder", 1, 0)} - {("encoder", 1, 1)})
    assert set(weight_change(remove(model, mask), remove(model, mask)).total.values) == {0.0}
    with pytest.raises(UsageError, match=r"head encoder\.1\.0, which the first has not"):
        weight_change(remove(model, mask), remove(model, other))


def test_other_models_are_refused():
    with pytest.raises(UsageError, match="'bert' and the second a 'gpt2'"):
        weight_change(build("bert"), build("gpt2"))
    with pytest.raises(UsageError, match="different heads"):
        weight_change(build("bert"), build("bert", num_hidden_layers=3))
    tiny = ResNetModel(ResNetConfig(embedding_size=4, hidden_sizes=[4], depths=[1]))
    with pytest.raises(UnsupportedError, match="no attention heads"):
        weight_change(tiny, tiny)


@given(st.lists(st.floats(1e-3, 10), min_size=1, max_size=8), st.floats(0.1, 10))
def test_the_spread_has_no_unit(means, factor):
    expected = (max(means) - min(means)) / np.mean(means)
    assert spread(means) == pytest.approx(expected)
    assert spread([mean * factor for mean in means]) == pytest.approx(expected, abs=1e-9)
    assert spread([*means, float("nan")]) == spread(means)


def test_no_layers_have_no_spread():
    assert np.isnan(spread([float("nan")]))
    assert spread([0.0, 0.0]) == 0
