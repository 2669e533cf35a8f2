from __future__ import annotations

from pathlib import Path

import torch

import headcount as hc
from headcount.models.random_weights import has_weights, random_model
from models.zoo import build, masks


def test_random_weights_from_a_config(tmp_path: Path) -> None:
    model = build("bert")
    small = hc.remove(model, masks(hc.layout(model))["uneven"])
    small.save_pretrained(tmp_path)
    assert has_weights(str(tmp_path))
    assert has_weights("some-name-on-the-hub")
    assert not has_weights(str(tmp_path / "config.json"))
    (tmp_path / "model.safetensors").unlink()
    assert not has_weights(str(tmp_path))
    state = torch.random.get_rng_state()
    one, two, three = (random_model(str(tmp_path), seed=seed) for seed in (0, 0, 1))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert hc.layout(one) == hc.layout(small)
    assert not one.training
    name = "bert.encoder.layer.1.attention.self.query.weight"
    assert torch.equal(one.get_parameter(name), two.get_parameter(name))
    assert not torch.equal(one.get_parameter(name), three.get_parameter(name))
