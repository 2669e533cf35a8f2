"""How much a task's loss depends on each head."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from headcount.heads import Layout
from headcount.runs.contents import FILE
from headcount.runs.kinds.kind import RunContext, RunKind, RunOutput
from headcount.runs.results import ByHead, Number, Result
from headcount.sensitivity.options import GradientOptions

if TYPE_CHECKING:
    from headcount.runs.run import Run


@dataclass(frozen=True, kw_only=True)
class ImportanceSummary(Result):
    """How much the loss depends on each head."""

    model: str
    """The model."""
    task: str
    """The task."""
    seed: int
    """Of the sample of rows."""
    predicts: str
    """The kind of task, which says what the loss is."""
    layout: Layout
    """The heads."""
    scores: ByHead
    """The mean absolute gradient of the loss at the gate of each head."""
    stderr: ByHead
    """Its standard errors over examples."""
    n: int
    """Examples."""
    loss: Number
    """Their mean loss."""
    normalize: str
    """none, or the norm that the scores of each layer are divided by."""

    def columns(self) -> dict[str, Any]:
        """The mean loss, and over how many examples."""
        return {"loss": self.loss, "n": self.n}


@dataclass(frozen=True, kw_only=True)
class ImportanceOptions(RunKind):
    """How much a task's loss depends on each head."""

    result: ClassVar = ImportanceSummary
    seeded: ClassVar = "gradient_options"
    needs_task: ClassVar = True

    gradient_options: GradientOptions = field(default_factory=GradientOptions)
    """Which rows, and what becomes of the scores."""
    keep: str | None = field(default=None, metadata=FILE)
    """Heads that stay while it is measured; all if left out."""

    def execute(self, run: Run, context: RunContext) -> RunOutput:
        """Measure it; the scores are in the record."""
        from headcount.base.options import defined, to_plain
        from headcount.runs.opening import depends_on, mask_of, open_run
        from headcount.runs.values import used_rows
        from headcount.sensitivity.gradients import importance

        subject, options = open_run(run, context.subjects), self.gradient_options
        task = subject.need_task()
        scores = importance(
            subject.model,
            task,
            report=context.report,
            tokenizer=subject.tokenizer,
            mask=mask_of(self.keep, subject) if self.keep else None,
            **to_plain(options),
        )
        split = options.split or subject.looked_at
        rows = subject.rows_of(split)
        numbers = defined(scores.to_json())
        result = {"model": run.model, "task": task.name, "seed": options.seed}
        return RunOutput(
            result=ImportanceSummary.from_json({**numbers, "predicts": scores.kind, **result}),
            identity=depends_on(run, subject.model, subject.tokenizer, rows=rows),
            rows={"measured": used_rows(rows, split) | {"sampled": options.samples}},
            value=scores,
        )
