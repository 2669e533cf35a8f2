"""Decoders in ONNX with their cache: token by token in onnxruntime, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import headcount as hc
from exports.exporting import built
from headcount.base.errors import UnsupportedError
from headcount.exports.export import export
from headcount.exports.onnx_cache import cached_layers
from models.zoo import build, shallow


def session_of(folder):
    import onnxruntime

    return onnxruntime.InferenceSession(folder / "model.onnx")


def generate(session, ids, mask, steps):
    """Greedy tokens, each from the graph's own keys and values of those before."""
    shapes = {put.name: put.shape for put in session.get_inputs()}
    past = {
        name: np.zeros((len(ids), shape[1], 0, shape[3]), np.float32)
        for name, shape in shapes.items()
        if name.startswith("past_key_values")
    }
    names, new = [put.name for put in session.get_outputs()], []
    for _ in range(steps):
        positions = (mask.cumsum(1) - 1).clip(0)[:, -ids.shape[1] :]
        plain = {"input_ids": ids, "attention_mask": mask, "position_ids": positions}
        feeds = {name: value for name, value in (plain | past).items() if name in shapes}
        found = dict(zip(names, session.run(None, feeds), strict=True))
        ids = found["logits"][:, -1:].argmax(-1)
        new.append(ids)
        mask = np.concatenate([mask, np.ones_like(ids)], axis=1)
        past = {name: found[name.replace("past_key_values", "present")] for name in past}
    return np.concatenate(new, axis=1), past


def test_uneven_and_emptied_layers_with_grouped_heads_token_by_token(tmp_path):
    model = built(LlamaForCausalLM, LlamaConfig)
    small = hc.remove(model, hc.Mask.parse("0624", hc.layout(model)))
    done = export(small, "onnx-cache", tmp_path / "out")
    assert done.difference <= 1e-4
    session = session_of(tmp_path / "out")
    shapes = {put.name: put.shape for put in session.get_inputs()}
    cached = [name for name in shapes if name.startswith("past")]
    assert cached == [f"past_key_values.{n}.{part}" for n in (1, 2, 3) for part in ("key", "value")]
    assert [shapes[name][1] for name in cached[::2]] == [3, 1, 2]
    assert {tuple(shapes[name][i] for i in (0, 2, 3)) for name in cached} == {
        ("batch", "past_length", 8)
    }
    ids = torch.tensor([[5, 9, 200, 31, 7], [0, 0, 12, 44, 90]])
    mask = torch.tensor([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]])
    kept = {"max_new_tokens": 12, "do_sample": False, "pad_token_id": 0}
    expected = small.generate(ids, attention_mask=mask, **kept)[:, 5:]
    found, past = generate(session, ids.numpy(), mask.numpy(), 12)
    assert np.array_equal(found, expected.numpy())
    assert {value.shape[2] for value in past.values()} == {5 + 11}
    # the cache is that of transformers, too
    with torch.no_grad():
        whole = small(torch.cat([ids[:1], torch.from_numpy(found[:1, :-1])], 1), use_cache=True)
    theirs = whole.past_key_values.layers[2].keys
    assert np.allclose(theirs.numpy(), past["past_key_values.2.key"][:1], atol=1e-4)


def test_a_model_with_heads_of_their_own_and_positions_in_a_table(tmp_path):
    model = build("gpt2", **shallow("gpt2", 2))
    small = hc.remove(model, {1: [0, 2]})
    export(small, "onnx-cache", tmp_path / "out")
    ids = torch.tensor([[5, 9, 20, 31, 7]])
    expected = small.generate(ids, max_new_tokens=6, do_sample=False, pad_token_id=0)[:, 5:]
    found, _ = generate(session_of(tmp_path / "out"), ids.numpy(), np.ones_like(ids), 6)
    assert np.array_equal(found, expected.numpy())


def test_a_cache_that_is_wrong_is_found(tmp_path, monkeypatch):
    """Keys and values of the wrong tokens: the steps behind the first differ."""
    from headcount.exports import onnx_cache

    class Forgetful(onnx_cache.CachedForward):
        def forward(self, input_ids, attention_mask, position_ids, past):
            logits, *present = super().forward(input_ids, attention_mask, position_ids, past)
            return [logits, *(part.flip(2) for part in present)]

    monkeypatch.setattr(onnx_cache, "CachedForward", Forgetful)
    model = build("llama", **shallow("llama", 1))
    with pytest.raises(UnsupportedError, match="token by token its answers differ"):
        export(hc.remove(model, {0: [0, 1]}), "onnx-cache", tmp_path / "out")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("family", ["bert", "t5", "vit"])
def test_others_are_refused(family, tmp_path):
    with pytest.raises(UnsupportedError, match=r"writes decoders alone.*Export to onnx"):
        export(build(family), "onnx-cache", tmp_path / "out")


def test_layers_without_heads_keep_nothing():
    model = build("llama")
    small = hc.remove(model, hc.Mask.parse("4020", hc.layout(model)))
    layers, count = cached_layers(small)
    assert count == 4
    assert [(one.number, one.groups, one.key, one.value) for one in layers] == [
        (0, 2, 8, 8), (2, 1, 8, 8),
    ]  # fmt: skip
