"""The methods that train gates, as options: what can be chosen about them, with its defaults.

    inputs = MethodInputs(training=TrainingInputs(task=..., ...))
    StraightThrough(gate_lr=0.5).prepare(model, inputs)(0.5, seed)

Their weights beside the gates have options of their own (`TrainOptions`). Nothing here needs torch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from headcount.base.errors import UsageError
from headcount.base.names import unknown
from headcount.base.options import checked
from headcount.heads import Layout
from headcount.pruning.counts import require_ratio
from headcount.pruning.methods import Decide, Decision, MethodInputs
from headcount.pruning.select import as_model

if TYPE_CHECKING:
    from torch import nn

    from headcount.learned.kinds import GateKind
    from headcount.training.options import TrainingInputs

COARSE = ("softplus", "softplus-derivative", "linear", "relu", "clipped-relu")


@dataclass(frozen=True, kw_only=True)
@checked
class GateOptions:
    """What all of them share: how gates are trained, and what is traced meanwhile."""

    name: ClassVar[str]
    needs: ClassVar = "training"
    ratio: ClassVar = "free"
    # What only some can choose: they have fields of these names.
    mu = 0.0
    gate_momentum = 0.0
    reach = 0.5
    hold = "shift"

    gate_lr: float = 0.1
    """Learning rate of the gates."""
    gate_optimizer: Literal["sgd", "adam"] = "adam"
    """The gates' own optimizer."""
    gate_schedule: Literal["constant", "linear", "cosine"] = "constant"
    """How the gates' learning rate falls over the search."""
    settle: float = 0.4
    """Share of all steps at the end in which gates are fixed and weights train on."""
    trace: int = 40
    """How many times, about, the values of all gates are traced."""
    score_points: int = 0
    """How many times over the run the score with the current gates is measured on the task's
    evaluation split, for gates-path.png; 0 for none."""
    score_rows: int = 512
    """Rows of that split behind each of these scores: one seeded sample for all."""

    def __post_init__(self) -> None:
        if problems := [text for wrong, text in self._checks() if wrong]:
            raise UsageError("; ".join(problems) + ".")

    def _checks(self) -> list[tuple[bool, str]]:
        """(whether it is wrong, what is wrong) for every option."""
        return [
            (_bad(self.gate_lr), f"the gates' learning rate must be above 0, not {self.gate_lr}"),
            (
                not 0 <= self.gate_momentum < 1,
                f"the gates' momentum must be in [0, 1), not {self.gate_momentum}",
            ),
            (not 0 <= self.settle < 1, f"settle must be in [0, 1), not {self.settle}"),
            (not 0 <= self.reach <= 1, f"reach must be in [0, 1], not {self.reach}"),
            (self.trace < 1, f"trace must be at least 1, not {self.trace}"),
            (self.score_points < 0, f"score_points must not be negative, not {self.score_points}"),
            (self.score_rows < 1, f"score_rows must be at least 1, not {self.score_rows}"),
            _unknown("optimizer of gates", self.gate_optimizer, ("sgd", "adam")),
            _unknown("schedule of gates", self.gate_schedule, ("constant", "linear", "cosine")),
            _unknown("way to hold a ratio", self.hold, ("penalty", "shift")),
        ]

    def kind(self) -> GateKind:
        """What is trained for each head, and how a gate comes of it."""
        raise UsageError("Choose straight-through, hard-concrete or subset gates.")

    def rate(self, done: float) -> float:
        """The learning rate after this share of the search."""
        if self.gate_schedule == "linear":
            return self.gate_lr * (1 - done)
        if self.gate_schedule == "cosine":
            return self.gate_lr * (1 + math.cos(math.pi * done)) / 2
        return self.gate_lr

    def prepare(self, model: nn.Module | Layout, given: MethodInputs) -> Decide:
        """Every ratio and seed is one training, from the same model."""
        training: TrainingInputs | None = given.training
        if training is None:
            raise UsageError(f"The method '{self.name}' trains gates: pass a task.")
        from headcount.models.door import require_pretrained

        whole = require_pretrained(as_model(model, self.name), f"The method '{self.name}'")

        def decide(ratio: float | None, seed: int) -> Decision:
            from headcount.learned.run import learn

            if self.ratio == "needed":
                require_ratio(self.name, ratio)
            work = training.work
            gates = learn(
                whole,
                training.task,
                self,
                ratio,
                train=replace(training.options, seed=seed),
                tokenizer=training.tokenizer,
                device=training.device,
                out=None if work is None else work / f"{self.name}-{ratio}-{seed}",
                report=training.report,
                logging=training.logging,
            )
            return Decision(mask=gates.mask, model=gates.model, learned=gates)

        return decide


@dataclass(frozen=True, kw_only=True)
class StraightThrough(GateOptions):
    """Step gates with a coarse gradient (AutoAttention, eq. 8 to 10): they close and reopen."""

    name: ClassVar[str] = "straight-through"

    mu: float = 1e-3
    """Penalty on every open gate."""
    gate_lr: float = 0.5
    """Learning rate of the gates."""
    gate_optimizer: Literal["sgd", "adam"] = "sgd"
    """The gates' own optimizer."""
    gate_momentum: float = 0.9
    """Memory of sgd; averages the gradient over about 1 / (1 - momentum) steps."""
    gate_schedule: Literal["constant", "linear", "cosine"] = "linear"
    """How the gates' learning rate falls over the search."""
    coarse: Literal["softplus", "softplus-derivative", "linear", "relu", "clipped-relu"] = "linear"
    """What stands in for the step's derivative."""
    gate_start: float = 0.5
    """Centre of the truncated normal that gates start from."""
    gate_spread: float = 0.1
    """Its standard deviation."""
    reach: float = 0.5
    """Share of the search in which the number of open gates falls to the target."""
    hold: Literal["penalty", "shift"] = "shift"
    """With a ratio: how the number of open gates gets there."""

    def _checks(self) -> list[tuple[bool, str]]:
        return [
            (_bad(self.mu), f"mu must be above 0, not {self.mu}"),
            _unknown("coarse gradient", self.coarse, COARSE),
            (
                _bad(self.gate_start) or _bad(self.gate_spread),
                f"gate_start and gate_spread must be above 0, not {self.gate_start} and "
                f"{self.gate_spread}",
            ),
            *super()._checks(),
        ]

    def kind(self) -> GateKind:
        """Step gates."""
        from headcount.learned.straight import StepGates

        return StepGates(coarse=self.coarse, mean=self.gate_start, spread=self.gate_spread)


@dataclass(frozen=True, kw_only=True)
class HardConcrete(GateOptions):
    """Gates drawn from hard-concrete distributions whose probability of 0 is learned (L0).

    A ratio is met by the penalty: a shift takes all gates to where they are noisiest, and then the
    loss does not tell which are needed.
    """

    name: ClassVar[str] = "hard-concrete"

    mu: float = 0.1
    """Penalty on every open gate."""
    beta: float = 2 / 3
    """Temperature."""
    gamma: float = -0.1
    """Left end of the stretch, below 0."""
    zeta: float = 1.1
    """Right end of the stretch, above 1."""
    reach: float = 0.5
    """Share of the search in which the number of open gates falls to the target."""
    hold: Literal["penalty", "shift"] = "penalty"
    """With a ratio: how the number of open gates gets there."""

    def _checks(self) -> list[tuple[bool, str]]:
        return [
            (_bad(self.mu), f"mu must be above 0, not {self.mu}"),
            (
                _bad(self.beta) or not self.gamma < 0 or not self.zeta > 1,
                "hard-concrete gates need beta above 0, gamma below 0 and zeta above 1, not "
                f"{self.beta}, {self.gamma}, {self.zeta}",
            ),
            *super()._checks(),
        ]

    def kind(self) -> GateKind:
        """Hard-concrete gates."""
        from headcount.learned.concrete import ConcreteGates

        return ConcreteGates(beta=self.beta, gamma=self.gamma, zeta=self.zeta)


@dataclass(frozen=True, kw_only=True)
class Subset(GateOptions):
    """Sets of exactly the target number of heads, drawn less and less at random."""

    name: ClassVar[str] = "subset"
    ratio: ClassVar = "needed"

    hot: float = 1.0
    """Temperature at the start of the search."""
    cold: float = 0.1
    """Temperature at its end."""

    def _checks(self) -> list[tuple[bool, str]]:
        wrong = _bad(self.hot) or _bad(self.cold)
        problem = f"temperatures are above 0, not {self.hot} and {self.cold}"
        return [(wrong, problem), *super()._checks()]

    def kind(self) -> GateKind:
        """Subset gates."""
        from headcount.learned.subset import SubsetGates

        return SubsetGates(hot=self.hot, cold=self.cold)


def _bad(value: float) -> bool:
    return not (math.isfinite(value) and value > 0)


def _unknown(what: str, name: str, known: tuple[str, ...]) -> tuple[bool, str]:
    problem = str(unknown(f"there is no {what} '{name}'", name, known))
    return name not in known, problem.rstrip(".")
