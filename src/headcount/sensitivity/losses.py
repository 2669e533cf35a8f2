"""The loss of every example of a batch, whatever the model predicts."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from headcount.names import require
from headcount.tasks.encoding import IGNORED
from headcount.tasks.task import KINDS


def kind_of(model: nn.Module, logits: Tensor, labels: Tensor) -> str:
    """What the model predicts, seen from its answer: a class, a score, or tokens."""
    if logits.ndim == 2:
        one = logits.shape[1] == 1
        return "regression" if one or labels.is_floating_point() else "classification"
    config: Any = getattr(model, "config", None)
    if getattr(config, "is_encoder_decoder", False):
        return "translation"
    name = type(model).__name__
    return "causal-lm" if "CausalLM" in name or "LMHeadModel" in name else "masked-lm"


def example_losses(
    kind: str,
    logits: Tensor,  # (row, class), (row, 1) or (row, token, word)
    labels: Tensor,  # (row,) or (row, token)
) -> tuple[Tensor, Tensor]:
    """(row,) each example's loss, the mean over its labels; (row,) which examples have any.

    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 2.0]])
    >>> example_losses("classification", logits, torch.tensor([0, IGNORED]))
    (tensor([0.1269, 0.0000]), tensor([ True, False]))
    """
    require("kind", kind, KINDS)
    if kind == "regression":
        counts = (labels != IGNORED).reshape(len(labels), -1)
        difference = logits.reshape(len(labels), -1) - labels.reshape(len(labels), -1)
        losses = difference.square() * counts
    elif kind == "classification":
        losses = functional.cross_entropy(logits, labels, reduction="none", ignore_index=IGNORED)
        losses, counts = losses[:, None], (labels != IGNORED)[:, None]
    else:
        if kind == "causal-lm":
            logits, labels = logits[:, :-1], labels[:, 1:]
        counts = labels != IGNORED
        # most tokens of a masked LM are not asked for: no softmax over the vocabulary for them
        asked = functional.cross_entropy(logits[counts], labels[counts], reduction="none")
        losses = torch.zeros_like(labels, dtype=asked.dtype).masked_scatter(counts, asked)
    number = counts.sum(1)
    return losses.sum(1) / number.clamp_min(1), number > 0
