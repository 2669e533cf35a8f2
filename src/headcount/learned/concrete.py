"""Hard-concrete gates: the L0 rival (C2; eq. 11 to 13), a drawn gate for every head and step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from headcount.errors import UsageError
from headcount.learned.method import Learner, Setting
from headcount.learned.options import GateOptions
from headcount.learned.straight import above_zero

GATES = GateOptions(
    mu=0.1, learning_rate=0.1, optimizer="adam", schedule="constant", settle=0.4, reach=0.5,
    hold="penalty",
)  # fmt: skip
"""How these gates are trained where nothing else is said."""


def hard_concrete(
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
    gate_schedule: str = GATES.schedule,
    beta: float = 2 / 3,
    gamma: float = -0.1,
    zeta: float = 1.1,
    settle: float = GATES.settle,
    reach: float = GATES.reach,
    hold: str = GATES.hold,
    score_points: int = GATES.score_points,
    score_rows: int = GATES.score_rows,
) -> Learner:
    """Gates drawn from hard-concrete distributions whose chance of 0 is learned.

    A ratio is met by the penalty: a shift takes all gates to where they are noisiest, and then the
    loss does not tell which are needed.
    `task`, `tokenizer`, `train` (the weights' options), `device` and `work` (a folder for
    checkpoints) are what every learned method needs; the rest is its own.
    """
    gates = GateOptions(
        mu=mu, learning_rate=gate_lr, optimizer=gate_optimizer, schedule=gate_schedule,
        settle=settle, reach=reach, hold=hold, score_points=score_points, score_rows=score_rows,
    )  # fmt: skip
    kind = HardConcrete(beta=beta, gamma=gamma, zeta=zeta)
    setting = Setting(task=task, tokenizer=tokenizer, train=train, device=device, work=work)
    return Learner(model, kind, gates, setting)


@dataclass(frozen=True, kw_only=True)
class HardConcrete:
    """L0 gates (eq. 11 to 13): a stretched, clipped concrete variable with mass on 0 and on 1.

    s = σ((log u - log(1 - u) + log α) / β), gate = clip(s (ζ - γ) + γ, 0, 1), u uniform;
    P(gate ≠ 0) = σ(log α - β log(-γ / ζ)). At test a gate is whichever of 0 and 1 is likelier.
    """

    beta: float = 2 / 3
    """Temperature."""
    gamma: float = -0.1
    """Left end of the stretch, below 0."""
    zeta: float = 1.1
    """Right end of the stretch, above 1."""
    mean: float = 2.0
    """Centre of the normal that log α starts from: at 2, a gate is open with 97 % chance."""
    spread: float = 0.01
    """Its standard deviation."""
    name: str = "hard-concrete"
    noisy: bool = True
    gates: GateOptions = GATES
    """How they are trained where nothing else is said."""

    def __post_init__(self) -> None:
        if self.beta <= 0 or self.gamma >= 0 or self.zeta <= 1 or self.spread < 0:
            raise UsageError(
                f"Hard-concrete gates need beta above 0, gamma below 0, zeta above 1 and a spread "
                f"that is not negative, not {self.beta}, {self.gamma}, {self.zeta}, {self.spread}."
            )

    def start(self, count: int, generator: torch.Generator) -> Tensor:
        """Nearly all gates open."""
        return self.mean + self.spread * torch.randn(count, generator=generator)

    def draw(self, values: Tensor, generator: torch.Generator, done: float, keep: int) -> Tensor:
        """A sample of every gate."""
        u = torch.rand(values.shape, generator=generator).clamp(1e-6, 1 - 1e-6)
        s = torch.sigmoid((u.log() - (1 - u).log() + values) / self.beta)
        return (s * (self.zeta - self.gamma) + self.gamma).clamp(0, 1)

    def chance(self, values: Tensor) -> Tensor:
        """(head,) P(gate ≠ 0)."""
        return torch.sigmoid(values - self.beta * math.log(-self.gamma / self.zeta))

    def count(self, values: Tensor) -> Tensor:
        """The expected number of gates that are not 0 (eq. 12)."""
        return self.chance(values).sum()

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

    def describe(self) -> dict[str, Any]:
        """Its own settings."""
        return {"beta": self.beta, "gamma": self.gamma, "zeta": self.zeta, "mean": self.mean}
