"""Straight-through gates: AutoAttention, differentiable pruning of heads (§3.1, eq. 8 to 10).

Loss F + μ ΣG over step gates G = 1[W′ > 0]; the weights and W′ have an optimizer each.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from headcount.learned.coarse import coarse_factor, step


def above_zero(values: Tensor, keep: int) -> Tensor:
    """`values` moved so that the `keep` largest are above zero and the others not."""
    if keep >= len(values):
        low = values.min() if len(values) else values.new_zeros(())
        return values - torch.clamp(low - 1e-3, max=0.0)
    ordered = values.sort(descending=True).values
    high = ordered[keep - 1] if keep else ordered[0] + 1.0
    return values - (high + ordered[keep]) / 2


@dataclass(frozen=True, kw_only=True)
class StepGates:
    """Step gates G = 1[W′ > 0] with a coarse gradient (AutoAttention, eq. 8 to 10)."""

    coarse: str
    """What stands in for the step's derivative."""
    mean: float
    """Centre of the truncated normal that W′ starts from."""
    spread: float
    """Its standard deviation."""
    name: str = "straight-through"
    noisy: bool = False

    def start(self, count: int, generator: torch.Generator) -> Tensor:
        """A normal of which only what is above zero is taken: every gate starts open."""
        values = torch.empty(count)
        return torch.nn.init.trunc_normal_(
            values, self.mean, self.spread, a=1e-6, b=float("inf"), generator=generator
        )

    def draw(self, values: Tensor, generator: torch.Generator, done: float, keep: int) -> Tensor:
        """1 where W′ is above zero."""
        return step(values, coarse_factor(self.coarse))

    def count(self, values: Tensor) -> Tensor:
        """ΣG, its gradient coarse like that of the gates."""
        return step(values, coarse_factor(self.coarse)).sum()

    def open(self, values: Tensor, keep: int | None) -> Tensor:
        """The gates themselves: there is no gap between training and test."""
        return values > 0

    def hold(self, values: Tensor, keep: int) -> Tensor:
        """A common shift; with the linear gradient it is what a penalty of the right μ does."""
        return above_zero(values, keep)
