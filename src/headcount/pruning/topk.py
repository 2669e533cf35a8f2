"""The k largest as a set of 0 and 1 that a gradient goes through."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def top(values: Tensor, keep: int) -> Tensor:
    """(head,) whether a value is among the `keep` largest; exactly so many, ties by position."""
    order = values.argsort(descending=True, stable=True)
    chosen = torch.zeros(len(values), dtype=torch.bool)
    chosen[order[:keep]] = True
    return chosen


def soft_top(x: Tensor, keep: int) -> Tensor:
    """σ(x - t), t such that the sum is `keep`.

    >>> round(float(soft_top(torch.tensor([3.0, 1.0, -2.0]), 2).sum()), 4)
    2.0
    """
    if keep >= len(x):
        return torch.ones_like(x)
    low, high = x.double().min() - 60.0, x.double().max() + 60.0
    for _ in range(60):
        middle = (low + high) / 2
        more = torch.sigmoid(x.double() - middle).sum() > keep
        low, high = torch.where(more, middle, low), torch.where(more, high, middle)
    return torch.sigmoid(x.double() - (low + high) / 2).to(x.dtype)


class _TopK(torch.autograd.Function):
    """The `keep` largest as 0 and 1; backwards, the derivative of a soft set of the same size.

    The soft set is σ(x - t) with t so that it sums to `keep`; t follows x, which makes its
    derivative diag(d) - d dᵀ / Σd with d = σ′: what one head gains, others lose.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, keep: int) -> Tensor:
        soft = soft_top(x, keep)
        ctx.save_for_backward(soft * (1 - soft))
        return top(x, keep).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (slope,) = ctx.saved_tensors
        mean = (slope * grad).sum() / slope.sum().clamp_min(1e-12)
        return slope * (grad - mean), None


def draw_top(x: Tensor, keep: int, generator: torch.Generator) -> Tensor:
    """Exactly `keep` ones, drawn: the largest of x with Gumbel noise."""
    u = torch.rand(len(x), generator=generator).clamp(1e-9, 1 - 1e-7)
    return _TopK.apply(x - (-u.log()).log(), keep)
