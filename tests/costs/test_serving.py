from __future__ import annotations

import pytest
import torch

import headcount as hc
from headcount.base.errors import UsageError
from headcount.costs.serving import serving_cost
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
    assert found.share == found.cache / (found.cache + found.weights)
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


def test_a_context_longer_than_the_model_is_refused():
    with pytest.raises(UsageError, match="takes 64 tokens, not 65"):
        serving_cost(build("llama"), context=65)
