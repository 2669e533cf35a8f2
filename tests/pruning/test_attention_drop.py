from __future__ import annotations

import pytest
import torch

from headcount.base.errors import UnsupportedError
from headcount.pruning.attention_drop import layer_changes
from headcount.pruning.select import prepare
from models.zoo import build
from pruning.conftest import data


def given(model, batch, path):
    seen = []
    module = model.get_submodule(path)
    handle = module.register_forward_hook(lambda _m, args, _o: seen.append(args[0]))
    with torch.no_grad():
        model(**batch)
    handle.remove()
    return seen[0]


def test_changes_are_one_minus_the_cosine_of_the_stream():
    """From the hidden states of a Llama: what goes into both of a layer's norms."""
    model = build("llama")
    (batch,) = data(model)
    changes = layer_changes(model, [batch])
    real = batch["attention_mask"].bool()
    for number in range(4):
        norms = (
            f"model.layers.{number}.input_layernorm",
            f"model.layers.{number}.post_attention_layernorm",
        )
        seen = [given(model, batch, path) for path in norms]
        x, after = (tensor[real].double() for tensor in seen)
        cosine = (x * after).sum(1) / (x.norm(dim=1) * after.norm(dim=1))
        assert abs(float(changes["decoder", number]) - float(1 - cosine.mean())) < 1e-6


def test_whole_layers_go_first():
    model = build("bert")
    batches = data(model)
    changes = layer_changes(model, batches)
    order = sorted(changes, key=lambda layer: float(changes[layer]))
    decide = prepare(model, "attention-drop", inputs=batches)
    for count in (1, 2, 3):
        gone = {(head.stack, head.layer) for head in decide(count / 4, 0).dropped}
        assert gone == set(order[:count])


def test_blocks_side_by_side_are_refused():
    model = build("gpt-neox")
    with pytest.raises(UnsupportedError, match=r"'attention-drop' cannot see .* side by side"):
        prepare(model, "attention-drop", inputs=data(model))
