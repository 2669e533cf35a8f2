"""Numbers that compare two tensors of two models on the same batch, padding left out."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from headcount.base.errors import UnsupportedError, UsageError


def js_divergence(
    p: Tensor,  # (batch, head, query, key)
    q: Tensor,
    queries: Tensor | None = None,  # (batch, query) which tokens are no padding
    keys: Tensor | None = None,  # (batch, key)
    *,
    batch: int | None = None,
) -> Tensor:  # (batch, head)
    """Jensen–Shannon divergence in bits, mean over the queries that count.

    A row that looks nowhere is no distribution and does not count. Attention in windows has
    several matrices per input, which then count together: pass how many inputs there are.

    >>> p, q = torch.tensor([[[[1.0, 0.0]]]]), torch.tensor([[[[0.0, 1.0]]]])
    >>> js_divergence(p, q)
    tensor([[1.]], dtype=torch.float64)
    """
    if p.shape != q.shape:
        raise UnsupportedError(
            f"The two models attend over different places: {tuple(p.shape)} and {tuple(q.shape)}."
        )
    inputs = len(p) if batch is None else batch
    p, q = _wide(p), _wide(q).to(p.device)
    if not p.shape[1]:
        return p.new_zeros(inputs, 0)
    if keys is not None:
        hidden = ~keys.to(p.device)[:, None, None, :]
        p, q = p.masked_fill(hidden, 0), q.masked_fill(hidden, 0)
    sums = p.sum(-1), q.sum(-1)
    counted = (sums[0] != 0) & (sums[1] != 0)  # (batch, head, query)
    if queries is not None:
        counted &= queries.to(p.device)[:, None, :]
    p, q = (x / s.where(counted, 1.0)[..., None] for x, s in zip((p, q), sums, strict=True))
    rows = _row_divergence(p, q).where(counted, 0.0)
    fold = (inputs, -1, rows.shape[1], rows.shape[2])
    number = counted.reshape(fold).sum((1, 3))
    if not bool((number > 0).all()):
        raise UsageError("An input consists of padding only.")
    return rows.reshape(fold).sum((1, 3)) / number


def _row_divergence(p: Tensor, q: Tensor) -> Tensor:
    """(…, key) -> (…): Σ s ((1+t) ln(1+t) + (1-t) ln(1-t)) / (4 ln 2) with s = p+q, t = (p-q)/s."""
    least = 1e-15 if p.dtype == torch.float64 else 1e-7
    s = p + q
    t = (p - q) / s.clamp_min(1e-37)
    # 0 times the logarithm of 0 is 0
    up = (1 + t) * torch.log1p(t.clamp_min(least - 1))
    down = (1 - t) * torch.log1p((-t).clamp_min(least - 1))
    return ((s * (up + down)).sum(-1) / (4 * math.log(2))).clamp_min(0)


def l2_distance(
    a: Tensor,  # (batch, token, width)
    b: Tensor,
    tokens: Tensor | None = None,  # (batch, token) which are no padding
    *,
    batch: int | None = None,
) -> tuple[Tensor, Tensor]:  # (batch,), (batch,)
    """The length of a - b, mean over tokens; and the same relative to the length of a."""
    if a.shape != b.shape:
        raise UnsupportedError(
            f"The two models' hidden states differ in shape: {tuple(a.shape)}, {tuple(b.shape)}."
        )
    inputs = len(a) if batch is None else batch
    a, b = _wide(a), _wide(b).to(a.device)
    apart = (a - b).norm(dim=-1).reshape(inputs, -1)
    relative = apart / a.norm(dim=-1).reshape(inputs, -1).clamp_min(1e-30)
    if tokens is None:
        return apart.mean(1), relative.mean(1)
    counted = tokens.to(apart.device).reshape(inputs, -1)
    number = counted.sum(1)
    means = [(x.where(counted, 0.0)).sum(1) / number for x in (apart, relative)]
    return means[0], means[1]


def fitting(mask: Tensor | None, size: int, rows: int, what: str) -> Tensor | None:
    """The mask (batch, token) as booleans, None when nothing is padded; it must fit the tensor."""
    if mask is None or bool((mask != 0).all()):
        return None
    if mask.shape != (rows, size):
        raise UnsupportedError(
            f"The {what} has {size} places but the mask has {mask.shape[1]}: padding cannot be "
            "told from them. Pass inputs of one length at a time."
        )
    return mask != 0


def _wide(values: Tensor) -> Tensor:
    return values.to(torch.float32 if values.device.type == "mps" else torch.float64)
