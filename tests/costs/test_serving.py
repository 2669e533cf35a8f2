from __future__ import annotations

from typing import Any

import pytest
import torch

import headcount as hc
from headcount.base.errors import UsageError
from headcount.costs.cost import serving_cost
from models.zoo import build


def filled(model, context, batch):
    """Bytes of the cache that a model fills itself."""
    ids = torch.randint(5, 60, (batch, context), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        cache = model(input_ids=ids, use_cache=True).past_key_values
    tensors = [part for layer in cache.layers for part in (layer.keys, layer.values)]
    return sum(part.numel() * part.element_size() for part in tensors)


@pytest.mark.parametrize("family", ["llama", "gpt2", "qwen3"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_cache_is_what_the_model_fills(family, dtype):
    model = build(family).to(dtype)
    found = serving_cost(model, context=9, batch=3)
    assert found.cache == filled(model, 9, 3)
    assert found.weights == sum(p.numel() * p.element_size() for p in model.parameters())
    rows = sum(m.weight.nbytes for m in model.modules() if isinstance(m, torch.nn.Embedding))
    tied = 0 if family != "gpt2" else model.get_input_embeddings().weight.nbytes
    assert found.weights_read == found.weights - rows + tied  # GPT-2's output is the same table
    assert found.share == found.cache / (found.cache + found.weights_read)
    assert found.users_per_gib == pytest.approx(3 * 2**30 / filled(model, 9, 3))


def test_a_window_bounds_it():
    model = build("mistral")  # a window of 4 tokens, of which a step drops the oldest
    short, long = (serving_cost(model, context=n).cache for n in (3, 20))
    assert short == filled(model, 3, 1)
    assert long == serving_cost(model, context=4).cache
    assert filled(model, 20, 1) == long * 3 / 4


def test_without_keys_any_number_of_users_fits():
    model = build("llama")
    small = hc.remove(model, hc.Mask(hc.layout(model), frozenset()))
    found = serving_cost(small, context=9, batch=3)
    assert (found.cache, found.share, found.users_per_gib) == (0, 0.0, None)
    assert (found.most, found.verdict) == ({}, "No heads are left to remove.")


def cut_half(layout, *, layers):
    """Without the second half of the heads of every layer, or without the second half of layers."""
    heads = layout["decoder"].heads
    return hc.Mask.of(
        layout,
        [
            hc.Head("decoder", layer, head)
            for layer, many in enumerate(heads)
            for head in range(many)
            if (layer < len(heads) // 2 if layers else head < many // 2)
        ],
    )


@pytest.mark.parametrize("family", ["llama", "qwen3"])
def test_what_could_be_saved_is_what_a_removal_saves(family):
    model = build(family, num_hidden_layers=4)
    layout = hc.layout(model)
    whole = serving_cost(model, context=40, batch=3)
    masks = {
        "all heads": hc.Mask(layout, frozenset()),
        "half the key-value heads of every layer": cut_half(layout, layers=False),
        "all heads of half the layers": cut_half(layout, layers=True),
    }
    assert list(whole.most) == list(masks)
    for name, mask in masks.items():
        small = serving_cost(hc.remove(model, mask), context=40, batch=3)
        most = whole.most[name]
        assert most.cache == pytest.approx(1 - small.cache / whole.cache)
        # of Qwen3 the norms of queries and keys go with the heads of a layer
        assert most.weights == pytest.approx(1 - small.weights / whole.weights, rel=0.01)
        assert most.read == pytest.approx(1 - small.read / whole.read, rel=0.01)
        assert most.speedup == pytest.approx(whole.read / small.read, rel=0.01)


def test_layers_that_keep_most_are_the_half_that_saves_most():
    text: dict[str, Any] = {
        "layer_types": ["sliding_attention", "full_attention"],
        "sliding_window": 4,
    }
    found = serving_cost(build("mistral", num_hidden_layers=2, **text), context=60)
    assert found.most["all heads of half the layers"].cache == pytest.approx(60 / 64)


def test_an_odd_number_of_shared_keys_is_halved_downwards_and_one_is_not():
    odd: dict[str, Any] = {"num_attention_heads": 6, "num_key_value_heads": 3, "hidden_size": 48}
    name = "half the key-value heads of every layer, rounded down"
    assert serving_cost(build("llama", **odd), context=9).most[name].cache == pytest.approx(1 / 3)
    one = serving_cost(build("llama", **{**odd, "num_key_value_heads": 1}), context=9)
    assert list(one.most) == ["all heads", "all heads of half the layers"]


def test_of_an_encoder_and_decoder_the_encoder_is_not_read_again():
    model = build("t5")
    found = serving_cost(model, context=9)
    encoder = {id(p) for p in model.get_encoder().parameters()}
    decoder = [p for p in model.parameters() if id(p) not in encoder]
    tables = [m.weight for m in model.decoder.modules() if isinstance(m, torch.nn.Embedding)]
    looked_up = sum(t.nbytes for t in tables if any(t is p for p in decoder))
    head = 0 if any(model.lm_head.weight is p for p in decoder) else model.lm_head.weight.nbytes
    assert found.weights_read == sum(p.nbytes for p in decoder) - looked_up + head


def test_it_says_when_heads_are_not_worth_it():
    model = build("llama", vocab_size=5000, tie_word_embeddings=True)
    few, many = (serving_cost(model, context=n, batch=n) for n in (1, 60))
    assert few.verdict.startswith("Not worth it at this context and batch: half the key-value")
    assert many.verdict.startswith("Half the key-value heads of every layer would save at most")


def test_what_keeps_no_keys_or_has_no_users_is_refused():
    with pytest.raises(UsageError, match="has no decoder that keeps keys"):
        serving_cost(build("bert"), context=8)
    with pytest.raises(UsageError, match="at least 1 user, not 0"):
        serving_cost(build("llama"), context=8, batch=0)


def test_a_context_longer_than_the_model_is_refused():
    with pytest.raises(UsageError, match="takes 64 tokens, not 65"):
        serving_cost(build("llama"), context=65)
