from __future__ import annotations

import torch
from torch import nn

from headcount.models.probe import probe_inputs
from headcount.models.watch import read_positions, watching
from models.zoo import build


def test_each_run_is_seen_and_may_be_answered_otherwise():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    seen = []

    def take(key, args, output):
        seen.append((key, args[0].shape, output.shape))
        return torch.full_like(output, 7.0) if key == "last" else None

    with watching(model, [("first", "0"), ("last", "1")], take):
        assert model(torch.zeros(3, 2)).eq(7).all()
    assert [key for key, *_ in seen] == ["first", "last"]
    assert not model(torch.zeros(3, 2)).eq(7).any()
    assert len(seen) == 2


def test_a_classifier_reads_one_position_of_its_last_layer():
    model = build("bert")
    inputs = probe_inputs(model, batch=3, length=6)
    inputs["attention_mask"][1, 4:] = 0
    with torch.no_grad():  # where recovery calls it
        (last,), (below,) = (
            read_positions(model, f"bert.encoder.layer.{n}.attention.output.dense", inputs)
            for n in (3, 2)
        )
    assert last.view(3, 6).tolist() == [[True] + [False] * 5] * 3
    assert torch.equal(below, inputs["attention_mask"].bool().view(-1))
    assert all(p.grad is None for p in model.parameters())
    decoder = build("llama")
    inputs = probe_inputs(decoder, batch=2, length=5)
    assert read_positions(decoder, "model.layers.3.self_attn.o_proj", inputs)[0].all()
