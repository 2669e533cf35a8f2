"""How much a task's loss depends on each head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from headcount.runs.contents import FILE
from headcount.runs.kinds.kind import RunContext, RunKind, RunOutput
from headcount.sensitivity.options import GradientOptions

if TYPE_CHECKING:
    from headcount.runs.run import Run


@dataclass(frozen=True, kw_only=True)
class ImportanceOptions(RunKind):
    """How much a task's loss depends on each head."""

    seeded: ClassVar = "gradient_options"
    needs_task: ClassVar = True

    gradient_options: GradientOptions = field(default_factory=GradientOptions)
    """Which rows, and what becomes of the scores."""
    keep: str | None = field(default=None, metadata=FILE)
    """Heads that stay while it is measured; all if left out."""

    def execute(self, run: Run, context: RunContext) -> RunOutput:
        """Measure it; the scores are in the record."""
        from headcount.base.options import to_plain
        from headcount.runs.data import used_rows
        from headcount.runs.opening import depends_on, mask_of, open_run
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
        numbers = scores.to_json()
        result = {"model": run.model, "task": task.name, "seed": options.seed}
        return RunOutput(
            result=result | {"predicts": numbers["kind"], **numbers},
            identity=depends_on(run, subject.model, subject.tokenizer, rows=rows),
            rows={"measured": used_rows(rows, split) | {"sampled": options.samples}},
            value=scores,
        )

    @classmethod
    def columns(cls, record: Mapping[str, Any]) -> dict[str, Any]:
        """The mean loss, and over how many examples."""
        return {"loss": record["loss"], "n": record["n"]}
