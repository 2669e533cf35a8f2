from __future__ import annotations

import pytest
import torch

from headcount.base.errors import UnsupportedError
from headcount.heads import Head, Mask
from headcount.models.find import layout
from headcount.models.gates import gate
from headcount.models.probe import find_probe, relative_difference, run
from headcount.models.remove import remove
from models.zoo import build, masks


def test_luke_with_entities():
    model = build("luke")
    mask = masks(layout(model))["uneven"]
    small = remove(model, mask)
    inputs = find_probe(model, length=9, seed=5)
    assert "entity_ids" in inputs
    with gate(model, mask):
        expected = run(model, inputs)
    assert relative_difference(expected, run(small, inputs)) < 1e-5
    for name in ("entity_ids", "entity_position_ids"):
        del inputs[name]
    with pytest.raises(UnsupportedError, match=r"does not reach .*\.e2e_query, .*probe="):
        remove(model, mask, probe=inputs)


def test_heads_that_say_nothing_on_the_probe_are_not_verified():
    """Without a GPU, MRA's attention is zeros: any cut would look exact."""
    model = build("mra")
    with pytest.raises(UnsupportedError, match=r"On the probe input the heads of .* add nothing"):
        remove(model, masks(layout(model))["uneven"])


def test_heads_that_no_gate_can_hide_are_refused_by_name():
    model = build("wavlm")
    with pytest.raises(UnsupportedError, match="Gates do nothing in WavLM"):
        remove(model, Mask.full(layout(model)).drop([Head("encoder", 0, 1)]))


def test_heads_whose_weights_are_zero_can_go():
    model = build("bert")
    full = layout(model)
    torch.nn.init.zeros_(model.bert.encoder.layer[1].attention.output.dense.weight)
    small = remove(model, Mask.full(full).drop(h for h in full if h.layer == 1))
    assert layout(small)["encoder"].heads == (4, 0, 4, 4)


def test_refuses_heads_that_the_probe_does_not_reach():
    model = build("bert-decoder-cross")
    ids = {"input_ids": torch.tensor([[5, 6, 7]])}
    with pytest.raises(UnsupportedError, match=r"does not reach .*crossattention"):
        remove(model, Mask.none(layout(model)), probe=ids)
