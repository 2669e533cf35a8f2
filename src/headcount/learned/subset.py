"""Subset gates: exactly k heads in every step, by Gumbel top-k with a falling temperature.

Beyond the papers: differentiable subset pruning, the strongest published rival at a fixed number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from headcount.errors import UsageError
from headcount.learned.kinds import top
from headcount.learned.method import Learner, Setting
from headcount.learned.options import GateOptions


def subset(
    model: Any,
    *,
    task: Any = None,
    tokenizer: Any = None,
    train: Any = None,
    device: str = "auto",
    work: Any = None,
    gate_lr: float = 0.1,
    gate_optimizer: str = "adam",
    gate_schedule: str = "constant",
    hot: float = 1.0,
    cold: float = 0.1,
    settle: float = 0.4,
) -> Learner:
    """Sets of exactly the asked number of heads, drawn less and less at random.

    `task`, `tokenizer`, `train` (the weights' options), `device` and `work` (a folder for
    checkpoints) are what every learned method needs; the rest is its own.
    """
    gates = GateOptions(
        learning_rate=gate_lr, optimizer=gate_optimizer, schedule=gate_schedule, settle=settle
    )
    setting = Setting(task=task, tokenizer=tokenizer, train=train, device=device, work=work)
    return Learner(model, Subset(hot=hot, cold=cold), gates, setting, needs_ratio=True)


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


@dataclass(frozen=True, kw_only=True)
class Subset:
    """A drawn set of exactly k heads in every step: differentiable subset pruning.

    The k largest of w / τ + Gumbel noise are open; τ falls from `hot` to `cold`, so that early
    sets are mixed and late ones settled. At test the k largest w.
    """

    hot: float = 1.0
    """Temperature at the start of the search."""
    cold: float = 0.1
    """Temperature at its end."""
    name: str = "subset"
    noisy: bool = True

    def __post_init__(self) -> None:
        if self.hot <= 0 or self.cold <= 0:
            raise UsageError(f"Temperatures are above 0, not {self.hot} and {self.cold}.")

    def start(self, count: int, generator: torch.Generator) -> Tensor:
        """All alike; the noise makes the difference."""
        return torch.zeros(count)

    def temperature(self, done: float) -> float:
        """Falls by the same factor in every step."""
        return self.hot * (self.cold / self.hot) ** done

    def draw(self, values: Tensor, generator: torch.Generator, done: float, keep: int) -> Tensor:
        """Exactly `keep` ones."""
        u = torch.rand(len(values), generator=generator).clamp(1e-9, 1 - 1e-7)
        noise = -(-u.log()).log()
        return _TopK.apply(values / self.temperature(done) + noise, keep)

    def count(self, values: Tensor) -> Tensor:
        """No penalty: the number is always the asked one."""
        return values.new_zeros(())

    def open(self, values: Tensor, keep: int | None) -> Tensor:
        """The `keep` largest."""
        return top(values, len(values) if keep is None else keep)

    def hold(self, values: Tensor, keep: int) -> Tensor:
        """Around zero: a common shift changes nothing here."""
        return values - values.mean()

    def describe(self) -> dict[str, Any]:
        """Its own settings."""
        return {"hot": self.hot, "cold": self.cold}
