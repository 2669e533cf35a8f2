"""Two checkpoints compared head by head; the run's model is the first of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from headcount.changes.options import DriftOptions
from headcount.runs.contents import FILE
from headcount.runs.kinds.kind import RunContext, RunKind, RunOutput
from headcount.tasks.calibration import InputOptions

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from headcount.runs.run import Run
    from headcount.tasks.encoding import EncodedRows
    from headcount.tasks.task import Task


@dataclass(frozen=True, kw_only=True)
class TransferOptions(RunKind):
    """What fine-tuning changed, head by head; the run's model is the first of the two."""

    seeded: ClassVar = "input_options"

    finetuned: str = field(metadata=FILE)
    """The second model, of the same architecture."""
    input_options: InputOptions = field(default_factory=InputOptions)
    """What both read."""
    drift_options: DriftOptions = field(default_factory=DriftOptions)
    """What is asked beside their drift."""

    def execute(self, run: Run, context: RunContext) -> RunOutput:
        """Compare the run's model with the fine-tuned one; `context.report` opens a bar."""
        from headcount.changes.study import no_bar, transfer_study
        from headcount.models import fingerprint
        from headcount.runs.data import used_inputs
        from headcount.runs.opening import depends_on
        from headcount.runs.values import told

        models, tasks, tokenizer, rows, name = self._open(run)
        result = transfer_study(
            models,
            tasks,
            rows,
            tokenizer=tokenizer,
            input_options=self.input_options,
            options=self.drift_options,
            name=name,
            bar=context.report or no_bar,
        )
        named = {"pretrained": run.model, "finetuned": self.finetuned}
        result = replace(result, provenance={**result.provenance, **named})
        second = fingerprint.identity(models[1], tokenizer)
        return RunOutput(
            result=result.to_json(),
            identity=depends_on(run, models[0], tokenizer, inputs=told(rows), finetuned=second),
            rows={"measured": used_inputs(rows, name)},
            value=result,
        )

    def plan(self, run: Run) -> dict[str, Any]:
        """What would be compared, on what."""
        models, _, _, rows, name = self._open(run)
        return {
            "classes": ", ".join(type(model).__name__ for model in models),
            "inputs": f"{min(len(rows), self.input_options.most)} ({name})",
            "recall": self.drift_options.recall,
        }

    def _open(
        self, run: Run
    ) -> tuple[
        list[PreTrainedModel], list[Task | None], PreTrainedTokenizerBase | None, EncodedRows, str
    ]:
        """(the two models, their tasks, their tokenizer, what both read and what that is)."""
        from headcount.changes.pair import open_pair
        from headcount.runs.opening import name_of, task_of
        from headcount.tasks import TASKS
        from headcount.tasks.inputs import read_inputs
        from headcount.tasks.opening import open_several
        from headcount.tasks.source import Source

        options, before = self.drift_options, None
        if options.pretraining_task is not None:
            before = TASKS[options.pretraining_task](Source(data=options.pretraining_data))
        tasks = [before, None if run.task is None else task_of(run)]
        models, tokenizer = open_several([name_of(run), self.finetuned], run.model_options, tasks)
        open_pair(*models)
        rows, name = read_inputs(models[0], tokenizer, self.input_options, tasks[1])
        return models, tasks, tokenizer, rows, name
