"""Subset gates: exactly k heads in every step, by Gumbel top-k with a falling temperature.

Beyond the papers: differentiable subset pruning, the strongest published rival at a fixed number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from headcount.errors import UsageError
from headcount.learned.method import Learner, Setting
from headcount.learned.options import GateOptions
from headcount.pruning.topk import draw_top, top

GATES = GateOptions(learning_rate=0.1, optimizer="adam", schedule="constant", settle=0.4)
"""How these gates are trained where nothing else is said."""


def subset(
    model: Any,
    *,
    task: Any = None,
    tokenizer: Any = None,
    train: Any = None,
    device: str = "auto",
    work: Any = None,
    gate_lr: float = GATES.learning_rate,
    gate_optimizer: str = GATES.optimizer,
    gate_schedule: str = GATES.schedule,
    hot: float = 1.0,
    cold: float = 0.1,
    settle: float = GATES.settle,
    score_points: int = GATES.score_points,
    score_rows: int = GATES.score_rows,
) -> Learner:
    """Sets of exactly the asked number of heads, drawn less and less at random.

    `task`, `tokenizer`, `train` (the weights' options), `device` and `work` (a folder for
    checkpoints) are what every learned method needs; the rest is its own.
    """
    gates = GateOptions(
        learning_rate=gate_lr, optimizer=gate_optimizer, schedule=gate_schedule, settle=settle,
        score_points=score_points, score_rows=score_rows,
    )  # fmt: skip
    setting = Setting(task=task, tokenizer=tokenizer, train=train, device=device, work=work)
    return Learner(model, Subset(hot=hot, cold=cold), gates, setting, needs_ratio=True)


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
    gates: GateOptions = GATES
    """How they are trained where nothing else is said."""

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
        return draw_top(values / self.temperature(done), keep, generator)

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
