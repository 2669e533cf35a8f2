"""The step `distil`: trained on the full model's answers (`distillation.py`), without labels."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from headcount.base.errors import UsageError
from headcount.base.options import checked
from headcount.repair.repairs import RepairInputs, RepairNeed, RepairReport
from headcount.training.options import TrainOptions

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True, kw_only=True)
@checked
class Distil(TrainOptions):
    """Train towards the full model's answers, without labels."""

    needs: ClassVar[RepairNeed] = "calibration"
    done: ClassVar[str] = "distilled"

    hidden: float = 0.0
    """Weight of the relative squared error of all layers' outputs, beside that of the answers."""
    hold_back: float = 0.1
    """Share of the calibration rows that is not trained on: whether it helped is seen there."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.hidden >= 0:
            raise UsageError(f"The weight of the layers' outputs is not negative: {self.hidden}.")
        if not 0 < self.hold_back < 1:
            raise UsageError(
                f"The share of rows to hold back is above 0 and below 1, not {self.hold_back}."
            )

    def trained(self, small: PreTrainedModel) -> AbstractContextManager[None]:
        """Inside, what is to be trained of the model is: all weights."""
        return nullcontext()

    def apply(
        self, small: PreTrainedModel, full: PreTrainedModel, given: RepairInputs
    ) -> RepairReport:
        """The seed is that of the run."""
        from headcount.repair.distillation import distil_rows
        from headcount.tasks.kinds import task_kind

        result = distil_rows(
            small,
            full,
            given.calibration(),
            options=replace(self, seed=given.seed),
            kind=None if given.task is None else task_kind(given.task.kind),
            work=given.work,
            device=given.device,
            logging=given.logging,
        )
        return RepairReport(
            details=result.to_json(),
            steps=result.steps,
            examples=result.examples,
            rows=result.rows,
            note=result.note,
        )
