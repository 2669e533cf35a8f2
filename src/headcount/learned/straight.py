"""Straight-through gates: AutoAttention, differentiable pruning of heads (C1, C4; eq. 8 to 10).

Loss F + μ ΣG over step gates G = 1[W′ > 0]; the weights and W′ have an optimizer each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from headcount.errors import UsageError
from headcount.learned.coarse import coarse_factor, step
from headcount.learned.method import Learner, Setting
from headcount.learned.options import GateOptions

GATES = GateOptions(
    mu=1e-3, learning_rate=0.5, optimizer="sgd", momentum=0.9, schedule="linear", settle=0.4,
    reach=0.5, hold="shift",
)  # fmt: skip
"""How these gates are trained where nothing else is said."""
COARSE = "linear"
START, SPREAD = 0.5, 0.1


def straight_through(
    model: Any,
    *,
    task: Any = None,
    tokenizer: Any = None,
    train: Any = None,
    device: str = "auto",
    work: Any = None,
    mu: float = GATES.mu,
    gate_lr: float = GATES.learning_rate,
    gate_optimizer: str = GATES.optimizer,
    gate_momentum: float = GATES.momentum,
    gate_schedule: str = GATES.schedule,
    coarse: str = COARSE,
    gate_start: float = START,
    gate_spread: float = SPREAD,
    settle: float = GATES.settle,
    reach: float = GATES.reach,
    hold: str = GATES.hold,
    score_points: int = GATES.score_points,
    score_rows: int = GATES.score_rows,
) -> Learner:
    """Gates that close under a penalty and reopen where the loss asks for them.

    `task`, `tokenizer`, `train` (the weights' options), `device` and `work` (a folder for
    checkpoints) are what every learned method needs; the rest is its own.
    """
    gates = GateOptions(
        mu=mu, learning_rate=gate_lr, optimizer=gate_optimizer, momentum=gate_momentum,
        schedule=gate_schedule, settle=settle, reach=reach, hold=hold, score_points=score_points,
        score_rows=score_rows,
    )  # fmt: skip
    kind = StraightThrough(coarse=coarse, mean=gate_start, spread=gate_spread)
    setting = Setting(task=task, tokenizer=tokenizer, train=train, device=device, work=work)
    return Learner(model, kind, gates, setting)


def above_zero(values: Tensor, keep: int) -> Tensor:
    """`values` moved so that the `keep` largest are above zero and the others not."""
    if keep >= len(values):
        low = values.min() if len(values) else values.new_zeros(())
        return values - torch.clamp(low - 1e-3, max=0.0)
    ordered = values.sort(descending=True).values
    high = ordered[keep - 1] if keep else ordered[0] + 1.0
    return values - (high + ordered[keep]) / 2


@dataclass(frozen=True, kw_only=True)
class StraightThrough:
    """Step gates G = 1[W′ > 0] with a coarse gradient (AutoAttention, eq. 8 to 10)."""

    coarse: str = COARSE
    """What stands in for the step's derivative."""
    mean: float = START
    """Centre of the truncated normal that W′ starts from."""
    spread: float = SPREAD
    """Its standard deviation."""
    name: str = "straight-through"
    noisy: bool = False
    gates: GateOptions = GATES
    """How they are trained where nothing else is said."""

    def __post_init__(self) -> None:
        coarse_factor(self.coarse)
        if self.mean <= 0 or self.spread <= 0:
            raise UsageError(
                f"W′ starts above zero: its mean ({self.mean}) and spread ({self.spread}) are "
                "positive numbers."
            )

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

    def describe(self) -> dict[str, Any]:
        """Its own settings."""
        return {"coarse": self.coarse, "mean": self.mean, "spread": self.spread}
