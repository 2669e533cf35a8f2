"""Coarse gradients of the step function: what stands in for a derivative that is 0.

AutoAttention, §3.1. The gate is G = 1[w > 0], forwards. Backwards, the gradient at G goes on to w
times a factor:

| name | factor | a closed gate (w ≤ 0) |
|---|---|---|
| softplus | log(1 + eʷ), eq. 10 of AutoAttention as it is printed | can reopen |
| softplus-derivative | 1 / (1 + e⁻ʷ), as in the work that the equation cites | can reopen |
| linear | 1 | can reopen |
| relu | 1 where w > 0, else 0 | stays closed |
| clipped-relu | 1 where 0 < w < 1, else 0 | stays closed |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from headcount.base.names import require

Factor = Callable[[Tensor], Tensor]

COARSE: dict[str, Factor] = {
    "softplus": functional.softplus,
    "softplus-derivative": torch.sigmoid,
    "linear": torch.ones_like,
    "relu": lambda w: (w > 0).to(w.dtype),
    "clipped-relu": lambda w: ((w > 0) & (w < 1)).to(w.dtype),
}


def coarse_factor(name: str) -> Factor:
    """The factor of this name."""
    return COARSE[require("coarse gradient", name, COARSE)]


class _Step(torch.autograd.Function):
    """1[w > 0] forwards, the coarse gradient backwards."""

    @staticmethod
    def forward(ctx: Any, w: Tensor, factor: Factor) -> Tensor:
        ctx.save_for_backward(factor(w))
        return (w > 0).to(w.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (factor,) = ctx.saved_tensors
        return grad * factor, None


def step(w: Tensor, factor: Factor) -> Tensor:
    """Gates of 0 and 1 that a gradient goes through.

    >>> w = torch.tensor([-1.0, 2.0], requires_grad=True)
    >>> step(w, COARSE["linear"]).sum().backward()
    >>> step(w, COARSE["linear"]).tolist(), w.grad.tolist()
    ([0.0, 1.0], [1.0, 1.0])
    """
    return _Step.apply(w, factor)
