"""The loss of every example of a batch, whatever the model predicts."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from headcount.errors import UnsupportedError, UsageError
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
    if "CTC" in name:
        raise UnsupportedError(
            f"{name} learns by CTC, which aligns its answers with labels of another length: that "
            "loss has no importance here. Hide heads with hc.gate(model, mask) and compare "
            "model(**batch).loss; hc.redundancy needs no labels."
        )
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
    _require_fitting(kind, logits, labels)
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


def _require_fitting(kind: str, logits: Tensor, labels: Tensor) -> None:
    """Refuse labels that are not of what the model answers."""
    score = kind == "regression"
    answers = logits.shape if score else logits.shape[:-1]
    if labels.numel() != logits.numel() if score else labels.shape != answers:
        raise UsageError(
            f"The loss '{kind}' takes one label for every answer of the model: it gives "
            f"{' x '.join(map(str, answers))} answers, and there are "
            f"{' x '.join(map(str, labels.shape))} labels."
        )
    if score:
        return
    if labels.is_floating_point():
        raise UsageError(f"The loss '{kind}' takes whole numbers as labels, not {labels.dtype}.")
    known = labels[labels != IGNORED]
    if known.numel() and (known.min() < 0 or known.max() >= logits.shape[-1]):
        wrong = int(known.max() if known.max() >= logits.shape[-1] else known.min())
        raise UsageError(f"A label is {wrong}, and the model knows 0 to {logits.shape[-1] - 1}.")
