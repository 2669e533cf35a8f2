"""Count a model's FLOPs, module by module, on the meta device: no weights, no time.

torch counts every matrix product and convolution, two FLOPs for each multiply-add; element-wise
work is not counted. Causal attention counts as the whole square, as the kernels compute it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode
from transformers import PreTrainedConfig, PreTrainedModel

from headcount.base.errors import UnsupportedError, UsageError, in_words
from headcount.models.hooks import hooked
from headcount.models.probe import probe_inputs, text_config

DEFAULT_LENGTH = 128
POSITIONS = ("max_position_embeddings", "max_target_positions")
"""Where configs say how many tokens a model takes."""


@dataclass(frozen=True, kw_only=True)
class FlopCount:
    """FLOPs and runs of every module in one forward pass of one example."""

    model: str
    """Class whose forward pass was counted: the model's, or that of the base model inside it."""
    total: int
    flops: Mapping[str, int]
    """By module path, all its runs together; those that never ran are not there."""
    runs: Mapping[str, int]


def fitting_length(config: PreTrainedConfig, length: int | None) -> int:
    """`length`, refused when the model has no positions for it; by default 128 or what fits."""
    text = text_config(config)
    named = [getattr(text, name, None) for name in POSITIONS]
    longest = min((size for size in named if isinstance(size, int) and size > 0), default=None)
    if length is None:
        return min(DEFAULT_LENGTH, longest or DEFAULT_LENGTH)
    if length < 1:
        raise UsageError(f"A length is at least 1 token, not {length}.")
    if longest and length > longest:
        raise UsageError(f"This {config.model_type} model takes {longest} tokens, not {length}.")
    return length


def inputs_at(
    model: PreTrainedModel, *, length: int, batch: int = 1, seed: int = 0
) -> dict[str, Tensor]:
    """Inputs of `length` tokens without padding, for the encoder and the decoder alike.

    Images and audio have the size that the model's config asks for.
    """
    inputs = probe_inputs(model, batch=batch, length=length, seed=seed)
    if "attention_mask" in inputs:
        inputs["attention_mask"] = torch.ones_like(inputs["attention_mask"])
    if "decoder_input_ids" in inputs:  # the probe's are two shorter, cross-attention's two longer
        longer = probe_inputs(model, batch=batch, length=length + 2, seed=seed)
        inputs["decoder_input_ids"] = longer["decoder_input_ids"]
    if "encoder_hidden_states" in inputs:
        inputs["encoder_hidden_states"] = inputs["encoder_hidden_states"][:, :length]
    return inputs


def count_flops(
    model: PreTrainedModel, *, length: int, probe: Mapping[str, Tensor] | None = None
) -> FlopCount:
    """FLOPs of a model on the meta device, with eager attention, without gradients.

    `probe` are the inputs to count on; else they are made up.

    What some heads on top do needs real numbers; then the base model inside is counted.
    """
    if probe is not None:
        inputs = {name: value.to("meta") for name, value in probe.items()}
        try:
            return _run(model, inputs, "")
        except Exception as error:
            kind, words = type(model).__name__, in_words(error)
            raise UsageError(f"{kind} does not run on the probe: {words}.") from error
    prefix = model.base_model_prefix
    inner = getattr(model, prefix, None)
    candidates = [("", model)]
    if isinstance(inner, PreTrainedModel):
        candidates.append((prefix + ".", inner))
    failure: Exception | None = None
    for start, candidate in candidates:
        inputs = inputs_at(candidate, length=length)
        try:
            return _run(candidate, inputs, start)
        except Exception as error:
            failure = failure or error
    reason = (str(failure).strip().splitlines() or [type(failure).__name__])[0]
    raise UnsupportedError(
        f"The FLOPs of {type(model).__name__} cannot be counted without its weights: {reason}"
    ) from failure


def _run(model: PreTrainedModel, inputs: dict[str, Any], start: str) -> FlopCount:
    runs: Counter[str] = Counter()
    names = {id(module): start + path for path, module in model.named_modules()}

    def hook(module: nn.Module) -> Callable[[], object]:
        # a module that stands in several places has one name, the first
        name = names[id(module)]
        return lambda: module.register_forward_pre_hook(lambda *_: runs.update([name]))

    hooks = [hook(module) for module in model.modules()]
    counter = FlopCounterMode(display=False)
    with hooked(hooks), torch.no_grad(), counter, _Unasked():
        model(**inputs)
    root = type(model).__name__ + "."
    flops = {
        start + name.removeprefix(root): sum(by_operation.values())
        for name, by_operation in counter.get_flop_counts().items()
        if name.startswith(root)
    }
    return FlopCount(
        model=type(model).__name__, total=counter.get_total_flops(), flops=flops, runs=dict(runs)
    )


class _Unasked(TorchDispatchMode):
    """Answers no when code asks a tensor without data a yes-or-no question.

    Models ask whether there is padding, or whether a mask hides anything at all; either answer
    leads to the same matrix products.
    """

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> object:
        if func is torch.ops.aten._local_scalar_dense.default and args[0].dtype == torch.bool:
            return False
        return func(*args, **(kwargs or {}))
