"""The door of every function that takes a model: one sentence for anything else."""

from __future__ import annotations

import itertools
import os

from torch import nn
from transformers import PreTrainedModel

from headcount.base.errors import UsageError


def require_model(model: object, function: str) -> nn.Module:
    """`model` when it is one; else the sentence that says what `function` was given instead."""
    if isinstance(model, (str, os.PathLike)):
        raise UsageError(
            f"{function} takes a model, not a name: load it first, with hc.load('{model}')."
        )
    if isinstance(model, type):
        raise UsageError(
            f"{function} takes a model, not the class {model.__name__}: build it first."
        )
    if not isinstance(model, nn.Module):
        raise UsageError(
            f"{function} takes a transformers model, not {type(model).__name__}; hc.load gives one."
        )
    if _from_peft(model):
        raise UsageError(
            f"{function} takes a transformers model, not peft's {type(model).__name__}: pass "
            "model.merge_and_unload(), or train with peft after the heads are removed."
        )
    return model


def require_pretrained(model: object, function: str) -> PreTrainedModel:
    """`model` when it is one of transformers' own kind, with a config."""
    model = require_model(model, function)
    if not isinstance(model, PreTrainedModel):
        raise UsageError(
            f"{function} takes a transformers model, not {type(model).__name__}; hc.load gives one."
        )
    return model


def require_runnable(model: object, function: str, probe: object) -> nn.Module:
    """`model` when it is of transformers' own kind, or comes with inputs to run it on."""
    model = require_model(model, function)
    if not isinstance(model, PreTrainedModel) and probe is None:
        raise UsageError(
            f"{function} knows no inputs of {type(model).__name__}, which is no transformers "
            "model: pass some with probe=, a dict of tensors or a function that runs the model."
        )
    return model


def require_numbers(model: nn.Module, function: str) -> nn.Module:
    """`model` when it has weights; one on the meta device has their shapes alone."""
    tensors = itertools.chain(model.named_parameters(), model.named_buffers())
    empty = next((name for name, tensor in tensors if tensor.is_meta), "")
    if empty:
        raise UsageError(
            f"{function} looks into a model's weights, and {empty} is on the meta device, without "
            "numbers: load the model with hc.load."
        )
    return model


def _from_peft(model: nn.Module) -> bool:
    """Whether this is a peft model, or has peft's layers in place of its own."""
    return any(type(module).__module__.partition(".")[0] == "peft" for module in model.modules())
