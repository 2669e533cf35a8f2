from __future__ import annotations

import math

import pytest
import torch

from headcount.models.find import sites_of
from headcount.pruning.magnitude import weight_norms
from models.zoo import build


@pytest.mark.parametrize(
    ("family", "attention", "names"),
    [
        ("bert", "bert.encoder.layer.1.attention.self", ("query", "key", "value")),
        ("llama", "model.layers.1.self_attn", ("q_proj", "k_proj", "v_proj")),
    ],
)
def test_the_norm_of_all_of_a_heads_weights(family, attention, names):
    model = build(family)
    site = sites_of(model)[1]
    norms = weight_norms(model, site)
    shared = site.heads // site.groups
    for head in range(4):
        total = 0.0
        for number, name in enumerate(names):
            index = head if number == 0 else head // shared
            rows = model.get_submodule(f"{attention}.{name}").weight[8 * index : 8 * index + 8]
            total += float(rows.detach().double().square().sum())
        out = model.get_submodule(site.out).weight[:, 8 * head : 8 * head + 8]
        total += float(out.detach().double().square().sum())
        assert math.isclose(float(norms[head]), math.sqrt(total), rel_tol=1e-6)


@pytest.mark.parametrize(("family", "child"), [("gpt2", "c_attn"), ("gpt-neox", "query_key_value")])
def test_fused_projections_are_read_as_they_are_cut(family, child):
    """A head whose queries, keys and values are made large is found as the largest."""
    model = build(family)
    site = sites_of(model)[1]
    weight = getattr(model.get_submodule(site.path), child).weight
    with torch.no_grad():
        if family == "gpt2":  # (input, 3 x heads x size), inputs first
            for part in range(3):
                weight[:, 32 * part + 16 : 32 * part + 24] *= 100
        else:  # (heads x 3 x size, input)
            weight[2 * 24 : 3 * 24] *= 100
    norms = weight_norms(model, site)
    assert float(norms[2]) > 20 * float(norms[[0, 1, 3]].max())
