from __future__ import annotations

import pytest
import torch

from headcount.base.errors import UnsupportedError, UsageError
from headcount.models.capture import AttentionSource, capture, collect
from headcount.models.find import layout
from headcount.models.probe import probe_inputs
from headcount.models.remove import remove
from models.zoo import build, masks


def test_only_one_layer_is_alive_at_a_time():
    import weakref

    model = build("bert", num_hidden_layers=6)
    alive: list = []
    most = 0

    def consume(place, attention):
        nonlocal most
        alive.append(weakref.ref(attention.untyped_storage()))
        most = max(most, sum(ref() is not None for ref in alive))

    with capture(model, consume), torch.no_grad():
        model(**probe_inputs(model))
    assert len(alive) == 6
    assert most <= 2


def test_answers_stay_the_models_own():
    model = build("gpt2")
    inputs = probe_inputs(model)
    with torch.no_grad():
        expected = model(**inputs).logits
        with capture(model, lambda place, attention: None):
            inside = model(**inputs).logits
    torch.testing.assert_close(inside, expected, rtol=1e-4, atol=1e-5)


def test_emptied_layers_keep_their_number():
    model = build("gpt2")
    small = remove(model, masks(layout(model))["alternate layers emptied"])
    captured = collect(small, probe_inputs(small))
    heads = {place.layer: attention.shape[1] for place, attention in captured.items()}
    assert heads == {0: 0, 1: 4, 2: 0, 3: 4}


def test_output_attentions_is_not_shifted_by_emptied_layers():
    model = build("bert", attention="eager")
    small = remove(model, masks(layout(model))["alternate layers emptied"])
    attentions = small(**probe_inputs(small), output_attentions=True).attentions
    assert [a.shape[1] for a in attentions] == [0, 4, 0, 4]


def test_shared_layers_count_their_uses():
    model = build("albert")
    assert sorted(collect(model, probe_inputs(model))) == [
        AttentionSource("encoder", layer, use) for layer in (0, 1) for use in (0, 1)
    ]


def test_padding_and_windows_are_in_it():
    model = build("mistral", attention="sdpa")
    inputs = probe_inputs(model, batch=1, length=9)
    inputs["attention_mask"][:] = 1
    attention = collect(model, inputs)[AttentionSource("decoder", 0, 0)][0, 0]
    assert (attention.triu(1) == 0).all()
    assert (attention.tril(-4) == 0).all(), "a window of four tokens"


def test_refuses_training_mode_and_strange_modules():
    model = build("bert").train()
    with pytest.raises(UsageError, match=r"model\.eval\(\)"), capture(model, lambda *_: None):
        model(**probe_inputs(model))
    with pytest.raises(UsageError, match="takes a transformers model"):
        capture(torch.nn.Linear(2, 2), lambda *_: None).__enter__()


def test_refuses_modules_that_return_no_probabilities(monkeypatch):
    model = build("bert")
    own = type(model.bert.encoder.layer[0].attention.self)
    forward = own.forward
    monkeypatch.setattr(own, "forward", lambda self, *a, **k: (forward(self, *a, **k)[0], None))
    with (
        pytest.raises(UnsupportedError, match="does not return attention probabilities"),
        capture(model, lambda *_: None),
    ):
        model(**probe_inputs(model))
    assert model.config._attn_implementation == "sdpa"


def test_refuses_attention_that_is_worked_without_being_called(monkeypatch):
    model = build("llama")
    layer = model.model.layers[2]
    attention = layer.self_attn
    monkeypatch.setitem(layer._modules, "self_attn", Around(attention))
    with (
        pytest.raises(UnsupportedError, match=r"without calling its attention at .*2\.self_attn"),
        capture(model, lambda *_: None),
    ):
        model(**probe_inputs(model))


class Around(torch.nn.Module):
    """Looks like an attention module, but calls the inner one's forward as a function."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, *args, **kwargs):
        return self.inner.forward(*args, **kwargs)
