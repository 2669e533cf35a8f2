"""Losses as sums over what counts, so that they add up over pieces of a batch and processes.

A label of -100 does not count. Dividing the sum by the number of labels that count in the whole
batch, over all pieces and processes, gives the same step however the batch was cut.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from headcount.tasks.encoding import IGNORED
from headcount.tasks.task import Kind


def loss_sum(kind: Kind, logits: Tensor, labels: Tensor, smoothing: float = 0.0) -> Tensor:
    """The summed loss; logits are (row, class), (row, 1) or (row, token, word)."""
    if kind == "regression":
        counts = labels != IGNORED
        difference = logits.squeeze(-1).float() - labels.float()
        return (difference.square() * counts).sum()
    if kind == "causal-lm":
        logits, labels = logits[:, :-1], labels[:, 1:]
    labels = labels.reshape(-1)
    logits = logits.reshape(len(labels), -1)
    if kind == "masked-lm":
        # most tokens are not asked for; leaving them out saves the softmax over the vocabulary
        asked = labels != IGNORED
        logits, labels = logits[asked], labels[asked]
    return functional.cross_entropy(
        logits.float(), labels, reduction="sum", ignore_index=IGNORED, label_smoothing=smoothing
    )


def count_labels(kind: Kind, labels: Tensor) -> Tensor:
    """How many labels count."""
    return ((labels[:, 1:] if kind == "causal-lm" else labels) != IGNORED).sum()


def token_scores(kind: Kind, logits: Tensor, labels: Tensor) -> Tensor:
    """(row, 3) for language modelling: correct tokens, summed -log p, and tokens asked for."""
    if kind == "causal-lm":
        logits, labels = logits[:, :-1], labels[:, 1:]
    asked = labels != IGNORED
    scores = torch.zeros(*labels.shape, 3, dtype=torch.float64, device=logits.device)
    words = logits[asked].float()
    wanted = labels[asked]
    scores[asked] = torch.stack(
        [
            (words.argmax(-1) == wanted).double(),
            functional.cross_entropy(words, wanted, reduction="none").double(),
            torch.ones_like(wanted, dtype=torch.float64),
        ],
        dim=-1,
    )
    return scores.sum(1)
