"""The step `finetune`: train on the task after the removal. Its options are those of training."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from headcount.base.options import by_field
from headcount.repair.repairs import RepairInputs, RepairNeed, RepairReport, Repairs
from headcount.training.options import TrainOptions

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True, kw_only=True)
class Finetune(TrainOptions):
    """Train on the task."""

    needs: ClassVar[RepairNeed] = "training"
    done: ClassVar[str] = "fine-tuned"

    @classmethod
    def of(cls, options: TrainOptions) -> Finetune:
        """The step with these options of training."""
        return cls(**by_field(options))

    def apply(
        self, small: PreTrainedModel, full: PreTrainedModel, given: RepairInputs
    ) -> RepairReport:
        """All weights are trained, whatever the full model does; the seed is that of the run."""
        from headcount.training.finetune import finetune
        from headcount.training.order import examples_seen

        assert given.task is not None  # what needs training has one
        trained = finetune(
            small,
            given.task,
            options=replace(self, seed=given.seed),
            work=given.work,
            tokenizer=given.tokenizer,
            device=given.device,
            evaluation=False,
            logging=given.logging,
        )
        seen = examples_seen(trained.rows, self.batch_size, trained.steps)
        return RepairReport(
            details={"resumed_from": trained.resumed_from},
            steps=trained.steps,
            examples=seen,
            rows=trained.rows,
        )


def training_of(repair: Repairs) -> Finetune | None:
    """The step that trains on the task, which methods that learn gates take for theirs."""
    return next((step for step in repair if isinstance(step, Finetune)), None)


def with_training(repair: Repairs, options: TrainOptions) -> Repairs:
    """The same steps with another training; added behind the others where there was none."""
    step = Finetune.of(options)
    if training_of(repair) is None:
        return (*repair, step)
    return tuple(step if isinstance(old, Finetune) else old for old in repair)
