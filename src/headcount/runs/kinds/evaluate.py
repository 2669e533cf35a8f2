"""A model scored on a task, with all heads and with masks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from headcount.runs.contents import FILE
from headcount.runs.kinds.kind import RunContext, RunKind, RunOutput
from headcount.runs.results import EvaluationResult, MetricValue, Result, ScoreResult
from headcount.training.scoring import Scoring

if TYPE_CHECKING:
    from headcount.runs.run import Run


@dataclass(frozen=True, kw_only=True)
class MaskScores(EvaluationResult):
    """The scores of one mask, and its differences from all heads."""

    differences: Mapping[str, MetricValue]
    """Metric -> this minus all heads, paired on the same rows."""


@dataclass(frozen=True, kw_only=True)
class EvaluateResult(ScoreResult, Result):
    """A model scored on a task."""

    model: str
    """The model."""
    masks: tuple[MaskScores, ...] = ()
    """The same for each mask, in their order."""

    @property
    def evaluated(self) -> ScoreResult:
        """The scores of all heads."""
        return self


@dataclass(frozen=True, kw_only=True)
class Evaluate(RunKind):
    """Score a model on a task, with all heads and with masks."""

    result: ClassVar = EvaluateResult
    seeded: ClassVar = "scoring"
    needs_task: ClassVar = True

    scoring: Scoring = field(default_factory=Scoring)
    """What is scored."""
    masks: tuple[str, ...] = field(default=(), metadata=FILE)
    """Heads that stay, as 777322, 6x12, JSON or mask.json."""
    tokens: int | None = None
    """Tokens per batch; as suits the device when left out."""
    beams: int = 1
    """Texts kept while one is written (beam search)."""

    def execute(self, run: Run, context: RunContext) -> RunOutput:
        """Score all heads, and every mask; the value is (evaluations, differences)."""
        from headcount.heads import Mask
        from headcount.runs.opening import depends_on, mask_of, open_run
        from headcount.training.doubts import doubts_about
        from headcount.training.evaluate import evaluate_rows
        from headcount.training.evaluation import differences

        subject = open_run(run, context.subjects)
        rows = subject.scored(self.scoring)
        masks = None
        if self.masks:
            masks = [Mask.full(subject.layout), *(mask_of(text, subject) for text in self.masks)]
        scores = evaluate_rows(
            subject.model,
            rows,
            masks,
            tokenizer=subject.tokenizer,
            scoring=self.scoring,
            tokens=self.tokens,
            beams=self.beams,
        )
        changes = differences(scores, self.scoring)
        doubts = doubts_about(scores[0], rows, subject.tokenizer, self.scoring)
        for doubt in doubts:
            context.note(doubt)
        result = scores[0].to_json() | {"model": run.model, "seed": self.scoring.seed}
        if masks:
            result["masks"] = [
                masked.to_json() | {"differences": {one.metric: one.to_json() for one in lost}}
                for masked, lost in zip(scores[1:], changes, strict=True)
            ]
        used = {"split": rows.split, "n": scores[0].n, "seed": self.scoring.seed}
        return RunOutput(
            result=EvaluateResult.from_json(result),
            identity=depends_on(run, subject.model, subject.tokenizer, scored=rows.fingerprint),
            rows={"evaluation": used | {"fingerprint": rows.fingerprint}},
            value=(scores, changes),
            notes=(*subject.need_task().notes, *doubts),
        )

    def plan(self, run: Run) -> dict[str, Any]:
        """What would be scored, on how many rows."""
        from headcount.runs.opening import open_run

        subject = open_run(run)
        rows = len(subject.scored(self.scoring))
        return {"class": type(subject.model).__name__, "task": run.task, "rows": rows}
