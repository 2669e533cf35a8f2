"""What every learned method is once it is prepared: a function from ratio and seed to a mask."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headcount.errors import UsageError
from headcount.heads import Mask
from headcount.learned.kinds import Kind
from headcount.learned.options import GateOptions
from headcount.learned.result import Learned
from headcount.learned.run import learn
from headcount.pruning.counts import require_ratio
from headcount.training.options import TrainOptions


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What gates are trained on and with, the same for every kind."""

    task: Any = None
    tokenizer: Any = None
    train: TrainOptions | None = None
    """How the weights are trained beside the gates."""
    device: str = "auto"
    work: str | Path | None = None
    """A folder in which runs can be resumed; None keeps nothing."""


class Learner:
    """A method that trains: every ratio and seed is one run, from the same model."""

    def __init__(
        self,
        model: Any,
        kind: Kind,
        gates: GateOptions,
        setting: Setting,
        *,
        needs_ratio: bool = False,
    ) -> None:
        self.model, self.kind, self.gates, self.setting = model, kind, gates, setting
        self.needs_ratio = needs_ratio

    def __call__(self, ratio: float | None, seed: int) -> Mask:
        """The heads that stay; the weights trained beside the gates are let go."""
        return self.run(ratio, seed).mask

    def run(self, ratio: float | None, seed: int) -> Learned:
        """Train, and give mask and weights."""
        setting = self.setting
        if setting.task is None:
            raise UsageError(f"The method '{self.kind.name}' trains gates: pass a task.")
        if self.needs_ratio:
            require_ratio(self.kind.name, ratio)
        work = setting.work
        return learn(
            self.model,
            setting.task,
            self.kind,
            ratio,
            gates=self.gates,
            train=replace(setting.train or TrainOptions(), seed=seed),
            tokenizer=setting.tokenizer,
            device=setting.device,
            out=None if work is None else Path(work) / f"{self.kind.name}-{ratio}-{seed}",
        )
