"""Everything that can be chosen about the training of gates, in one frozen value."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

from headcount.errors import UsageError, did_you_mean

OPTIMIZERS = ("sgd", "adam")
SCHEDULES = ("constant", "linear", "cosine")
HOLDS = ("penalty", "shift")


@dataclass(frozen=True, kw_only=True)
class GateOptions:
    """How gates are trained. The weights beside them have their own options (TrainOptions)."""

    mu: float = 1e-3
    """Penalty on every open gate."""
    learning_rate: float = 0.1
    """Learning rate of the gates."""
    optimizer: str = "sgd"
    """The gates' own optimizer: sgd or adam."""
    momentum: float = 0.0
    """Memory of sgd; averages the gradient over about 1 / (1 - momentum) steps."""
    schedule: str = "constant"
    """How the gates' learning rate falls over the search: constant, linear or cosine."""
    settle: float = 0.4
    """Share of all steps at the end in which gates are fixed and weights train on."""
    reach: float = 0.5
    """Share of the search in which the number of open gates falls to the asked one."""
    hold: str = "shift"
    """With a ratio: how the number of open gates gets there, by shift or by penalty."""
    trace: int = 40
    """About so many times the values of all gates are noted."""
    score_points: int = 0
    """So many times over the run, and before it, the score with the gates of that moment is
    measured on the task's evaluation split; 0 measures none."""
    score_rows: int = 512
    """Rows of that split behind each such score: one seeded sample for all of them."""

    def __post_init__(self) -> None:
        problems = [
            text
            for wrong, text in (
                (_bad(self.mu), f"mu must be above 0, not {self.mu}"),
                (
                    _bad(self.learning_rate),
                    f"the gates' learning rate must be above 0, not {self.learning_rate}",
                ),
                (
                    not 0 <= self.momentum < 1,
                    f"the gates' momentum must be in [0, 1), not {self.momentum}",
                ),
                (not 0 <= self.settle < 1, f"settle must be in [0, 1), not {self.settle}"),
                (not 0 <= self.reach <= 1, f"reach must be in [0, 1], not {self.reach}"),
                (self.trace < 1, f"trace must be at least 1, not {self.trace}"),
                (
                    self.score_points < 0,
                    f"score_points must not be negative, not {self.score_points}",
                ),
                (self.score_rows < 1, f"score_rows must be at least 1, not {self.score_rows}"),
                _unknown("optimizer of gates", self.optimizer, OPTIMIZERS),
                _unknown("schedule of gates", self.schedule, SCHEDULES),
                _unknown("way to hold a ratio", self.hold, HOLDS),
            )
            if wrong
        ]
        if problems:
            raise UsageError("; ".join(problems) + ".")

    def rate(self, done: float) -> float:
        """The learning rate after this share of the search."""
        if self.schedule == "linear":
            return self.learning_rate * (1 - done)
        if self.schedule == "cosine":
            return self.learning_rate * (1 + math.cos(math.pi * done)) / 2
        return self.learning_rate

    def to_json(self) -> dict[str, Any]:
        """A plain dict."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def _bad(value: float) -> bool:
    return not (math.isfinite(value) and value > 0)


def _unknown(what: str, name: str, known: tuple[str, ...]) -> tuple[bool, str]:
    hint = did_you_mean(name, known)
    return name not in known, f"there is no {what} '{name}'.{hint} Known: {', '.join(known)}"
