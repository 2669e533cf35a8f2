"""How far a pruned model's answers are from the full model's, on rows without labels."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from headcount.base.errors import UsageError
from headcount.models.batches import Batches, ModelBatch, batches_for, counted_tokens
from headcount.models.find import unwrap
from headcount.models.hooks import evaluating
from headcount.models.probe import run
from headcount.sensitivity.gradients import answers_of
from headcount.tasks.kinds import task_kind

CHUNK = 2**23
"""Logits that are compared at once."""


def divergence(small: nn.Module, full: nn.Module, data: Batches) -> float:
    """The mean KL divergence, in nats, of the small model's answers from the full one's, over rows
    or tokens that are no padding; where answers are no logits ‖small - full‖² / ‖full‖².
    """
    total, weight = divergences(small, full, data).sum(0).tolist()
    if not weight:
        raise UsageError("No token of the calibration rows counts, so answers cannot be compared.")
    return max(total / weight, 0.0)


def divergences(small: nn.Module, full: nn.Module, data: Batches) -> Tensor:  # (row, 2)
    """What each row adds to the divergence, and to what that is divided by."""
    small, full = unwrap(small), unwrap(full)
    rows: list[Tensor] = []
    with torch.no_grad(), evaluating(small), evaluating(full):
        for batch in batches_for(full, data):
            (left, logits), (right, _) = (_answers(m, batch, data) for m in (small, full))
            left, right = (x.reshape(-1, x.shape[-1]) for x in (left, right))
            counts = counted_tokens(batch.inputs, "decoder", len(right))
            size = max(len(v) for v in batch.inputs.values() if isinstance(v, Tensor) and v.ndim)
            row = torch.arange(len(right), device=right.device) // -(-len(right) // size)
            if counts is not None:
                left, right, row = left[counts], right[counts], row[counts]
            if logits:
                total, weight = _kl(right, left), torch.ones(len(right), dtype=torch.float64)
            else:
                total = (left.double() - right.double()).square().sum(-1)
                weight = right.double().square().sum(-1)
            both = torch.stack([total.cpu(), weight.cpu()], 1)
            rows.append(both.new_zeros(size, 2).index_add(0, row.cpu(), both))
    return torch.cat(rows) if rows else torch.zeros(0, 2, dtype=torch.float64)


def _answers(model: nn.Module, batch: ModelBatch, data: Batches) -> tuple[Tensor, bool]:
    """Predictions, and whether they are logits; of a model that predicts nothing its states."""
    name = getattr(data, "kind", None)
    try:
        kind, answers = answers_of(model, batch, None if name is None else task_kind(name))
    except UsageError:
        return run(model, batch.inputs)[0], False
    return kind.distributions(answers, batch), kind.logits


def _kl(right: Tensor, left: Tensor) -> Tensor:  # (position,)
    """Σ p (log p - log q), p by the right logits and q by the left."""
    rows, parts = max(1, CHUNK // right.shape[-1]), []
    for a, b in zip(right.split(rows), left.split(rows), strict=True):
        wide = torch.promote_types(a.dtype, torch.float32)
        log_p, log_q = a.to(wide).log_softmax(-1), b.to(wide).log_softmax(-1)
        values = torch.nn.functional.kl_div(log_q, log_p, reduction="none", log_target=True)
        parts.append(values.double().sum(-1))
    return torch.cat(parts) if parts else right.new_zeros(0, dtype=torch.float64)
