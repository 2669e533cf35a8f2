"""A model fed token by token through a key-value cache, dynamic or static."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import Cache, EncoderDecoderCache, StaticCache

from headcount.base.errors import UnsupportedError
from headcount.models.hooks import evaluating
from headcount.models.probe import seeded, tensors

STEPS = 2
"""Tokens that go through the cache one at a time, after all the others at once."""


def run_cached(
    model: nn.Module, inputs: Mapping[str, Any], *, static: bool = False
) -> list[Tensor]:
    """What `run` returns, when the last tokens go one at a time through a cache."""
    name = "decoder_input_ids" if "decoder_input_ids" in inputs else "input_ids"
    if name not in inputs or inputs[name].shape[1] <= STEPS:
        raise UnsupportedError("Without tokens there is nothing to cache.")
    ids = inputs[name]
    # a decoder's own padding would have to grow with the tokens
    left_out = (name, "attention_mask") if name == "input_ids" else (name,)
    others = {key: value for key, value in inputs.items() if key not in left_out}
    tokenwise = {name: ids}
    if name == "input_ids":
        for key, value in others.items():
            if isinstance(value, Tensor) and value.shape[:2] == ids.shape:
                tokenwise[key] = value
    once = {key: value for key, value in others.items() if key not in tokenwise}
    start, outputs = 0, []
    with torch.no_grad(), evaluating(model), seeded():
        cache = _static(model, tokenwise | once, ids.shape[1]) if static else None
        for end in range(ids.shape[1] - STEPS, ids.shape[1] + 1):
            part = {key: value[:, start:end] for key, value in tokenwise.items()}
            out = model(**part, **once, use_cache=True, past_key_values=cache)
            cache, start = cache_of(model, out), end
            outputs += tensors(out)
            if name == "input_ids":
                # images are seen with their own tokens
                once = {key: value for key, value in once.items() if key.startswith("encoder")}
    return outputs


def may_cache(answer: object) -> bool:
    """Whether a model with such an answer could return a cache: a classifier's has no place for it.

    >>> from transformers.modeling_outputs import CausalLMOutputWithPast, SequenceClassifierOutput
    >>> may_cache(CausalLMOutputWithPast()), may_cache(SequenceClassifierOutput())
    (True, False)
    """
    return not is_dataclass(answer) or hasattr(answer, "past_key_values")


def cache_of(model: nn.Module, out: Any) -> Cache:
    """The cache of an answer; refused where it has none."""
    cache = out.get("past_key_values")
    if not isinstance(cache, Cache):
        raise UnsupportedError(f"{type(model).__name__} returns no key-value cache.")
    return cache


def _static(model: Any, inputs: dict[str, Any], length: int) -> Cache:
    """An empty static cache of the kind that the model makes for itself."""
    config = model.config.get_text_config(decoder=True)
    # room to spare: the size of the cache must not be taken for the tokens seen
    cache = StaticCache(config=config, max_cache_len=length + 3)
    if not model.config.is_encoder_decoder and "encoder_hidden_states" not in inputs:
        return cache
    filled = cache_of(model, model(**inputs, use_cache=True))
    if not isinstance(filled, EncoderDecoderCache):
        return cache
    layer: Any = filled.cross_attention_cache.layers[0]
    sources = layer.keys
    return EncoderDecoderCache(
        cache, StaticCache(config=config, max_cache_len=0 if sources is None else sources.shape[-2])
    )
