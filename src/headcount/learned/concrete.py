"""Hard-concrete gates: a drawn gate for every head and step.

The L0 rival of AutoAttention, §3.2, eq. 11 to 13.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from headcount.learned.straight import above_zero


@dataclass(frozen=True, kw_only=True)
class ConcreteGates:
    """L0 gates (eq. 11 to 13): a stretched, clipped concrete variable with mass on 0 and on 1.

    s = σ((log u - log(1 - u) + log α) / β), gate = clip(s (ζ - γ) + γ, 0, 1), u uniform;
    P(gate ≠ 0) = σ(log α - β log(-γ / ζ)). At test a gate is whichever of 0 and 1 is likelier.
    """

    beta: float
    """Temperature."""
    gamma: float
    """Left end of the stretch, below 0."""
    zeta: float
    """Right end of the stretch, above 1."""
    mean: float = 2.0
    """Centre of the normal that log α starts from: at 2, a gate is open with p = 0.97."""
    spread: float = 0.01
    """Its standard deviation."""
    name: str = "hard-concrete"
    noisy: bool = True

    def start(self, count: int, generator: torch.Generator) -> Tensor:
        """Nearly all gates open."""
        return self.mean + self.spread * torch.randn(count, generator=generator)

    def draw(self, values: Tensor, generator: torch.Generator, done: float, keep: int) -> Tensor:
        """A sample of every gate."""
        u = torch.rand(values.shape, generator=generator).clamp(1e-6, 1 - 1e-6)
        s = torch.sigmoid((u.log() - (1 - u).log() + values) / self.beta)
        return (s * (self.zeta - self.gamma) + self.gamma).clamp(0, 1)

    def open_probability(self, values: Tensor) -> Tensor:
        """(head,) P(gate ≠ 0)."""
        return torch.sigmoid(values - self.beta * math.log(-self.gamma / self.zeta))

    def count(self, values: Tensor) -> Tensor:
        """The expected number of gates that are not 0 (eq. 12)."""
        return self.open_probability(values).sum()

    def open(self, values: Tensor, keep: int | None) -> Tensor:
        """Where 1 is likelier than 0, whatever number is asked for in the end.

        P(gate = 0) = σ(β log(-γ / ζ) - log α) and P(gate = 1) = σ(log α - β log((1 - γ)/(ζ - 1))).
        """
        zero = torch.sigmoid(self.beta * math.log(-self.gamma / self.zeta) - values)
        one = torch.sigmoid(values - self.beta * math.log((1 - self.gamma) / (self.zeta - 1)))
        return one > zero

    def hold(self, values: Tensor, keep: int) -> Tensor:
        """A common shift, so that for `keep` gates 1 is likelier than 0.

        Values that are near each other all come to lie near `even`, where a gate is anything from
        0 to 1: the penalty finds heads that this misses. Holding the expected number instead
        starves closed gates of gradients.
        """
        even = (
            self.beta / 2 * math.log(-self.gamma / self.zeta * (1 - self.gamma) / (self.zeta - 1))
        )
        return above_zero(values - even, keep) + even
