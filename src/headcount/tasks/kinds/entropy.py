"""Cross-entropies, labels drawn from predictions, and scores of tokens: what kinds share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from headcount.models.batches import ModelBatch, counted_tokens
from headcount.tasks.encoding import IGNORED
from headcount.tasks.metrics import Outcome


def entropies(logits: Tensor, labels: Tensor) -> Tensor:
    """(row, …) cross-entropies in single precision or better, 0 where a label does not count."""
    counts = labels != IGNORED
    # most tokens of a masked LM are not asked for: no softmax over the vocabulary for them
    asked = logits[counts].to(torch.promote_types(logits.dtype, torch.float32))
    losses = functional.cross_entropy(asked, labels[counts], reduction="none")
    return torch.zeros_like(labels, dtype=losses.dtype).masked_scatter(counts, losses)


def entropy_sum(logits: Tensor, labels: Tensor, smoothing: float, *, few: bool = False) -> Tensor:
    """The sum of cross-entropies in single precision; with `few` labels that count, of those."""
    labels = labels.reshape(-1)
    logits = logits.reshape(len(labels), -1)
    if few:
        asked = labels != IGNORED
        logits, labels = logits[asked], labels[asked]
    return functional.cross_entropy(
        logits.float(), labels, reduction="sum", ignore_index=IGNORED, label_smoothing=smoothing
    )


def draw_classes(logits: Tensor, generator: torch.Generator) -> Tensor:
    """(row, …) classes or words drawn from the prediction."""
    chances = logits.detach().softmax(-1).flatten(0, -2).cpu()
    drawn = torch.multinomial(chances, 1, generator=generator).view(logits.shape[:-1])
    return drawn.to(logits.device)


def where_asked(drawn: Tensor, batch: ModelBatch, stack: str = "encoder") -> Tensor:
    """(row, token) words, where the batch has labels that count, or tokens that are no padding."""
    keep = counted_tokens(batch.inputs, stack, drawn.numel())
    if batch.labels is not None:
        keep = batch.labels != IGNORED
    return drawn if keep is None else drawn.masked_fill(~keep.view(drawn.shape), IGNORED)


def token_scores(logits: Tensor, labels: Tensor) -> Tensor:
    """(row, 3) correct tokens, summed -log p, and tokens asked for."""
    counts = labels != IGNORED
    right = logits[counts].argmax(-1) == labels[counts]
    hits = torch.zeros_like(labels, dtype=torch.float64).masked_scatter(counts, right.double())
    losses = entropies(logits.float(), labels).double()
    return torch.stack([hits, losses, counts.double()], dim=-1).sum(1)


def token_outcome(kept: np.ndarray) -> tuple[Outcome, dict[str, Any]]:
    """What `token_scores` counted, row by row."""
    return Outcome(kept[:, :2], kept[:, 2]), {
        "row": np.arange(len(kept)),
        "correct": kept[:, 0].astype(int),
        "nll": kept[:, 1],
        "tokens": kept[:, 2].astype(int),
    }


def token_losses(table: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """The losses in such a table."""
    return table["nll"], table["tokens"].astype(float)
