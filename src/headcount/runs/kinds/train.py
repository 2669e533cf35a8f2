"""A model trained on a task: one with a head for the task, or one from its config alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from headcount.base.errors import UsageError
from headcount.runs.kinds.kind import MODEL, RunContext, RunKind, RunResult
from headcount.runs.results import EvaluationResult, Number, Result
from headcount.training.options import TrainOptions

if TYPE_CHECKING:
    from headcount.runs.run import Run
    from headcount.runs.subject import Subject


@dataclass(frozen=True, kw_only=True)
class TrainResult(Result):
    """A model trained on a task."""

    model: str
    """The model it started from."""
    task: str
    """The task."""
    steps: int
    """Steps of training."""
    rows_trained: int
    """Different rows."""
    resumed_from: int | None
    """The step where an interrupted training went on."""
    last_loss: Number
    """The loss at the end."""
    evaluation: EvaluationResult | None
    """The scores on the dev split."""

    def columns(self) -> dict[str, Any]:
        """Steps and the last loss."""
        return {"steps": self.steps, "last_loss": self.last_loss}

    @property
    def evaluated(self) -> EvaluationResult | None:
        """The score on the dev split."""
        return self.evaluation


@dataclass(frozen=True, kw_only=True)
class Train(RunKind):
    """Train a model on a task's train split, and score it on its dev split."""

    result: ClassVar = TrainResult
    seeded: ClassVar = "training"
    needs_task: ClassVar = True

    training: TrainOptions = field(default_factory=TrainOptions)
    """How it is trained."""
    rows: int | None = None
    """Train on a seeded sample of this many rows."""
    fraction: float | None = None
    """Train on this share of the rows."""
    from_scratch: bool = False
    """Start from random weights; only the model's config is used."""
    new_tokenizer: int | None = None
    """Make a tokenizer of this many tokens from the training texts (with from_scratch)."""
    curve_scores: bool = False
    """Score the dev split after every epoch."""

    def __post_init__(self) -> None:
        if self.new_tokenizer is not None and not self.from_scratch:
            raise UsageError("--new-tokenizer goes with --from-scratch, and without --tokenizer.")
        if self.rows is not None and self.fraction is not None:
            raise UsageError("Pass --rows or --fraction, not both.")
        if self.fraction is not None and not 0 < self.fraction <= 1:
            raise UsageError(f"A share of the rows is above 0 and at most 1, not {self.fraction}.")
        if self.rows is not None and self.rows < 1:
            raise UsageError(f"A number of rows is at least 1, not {self.rows}.")

    @property
    def sample(self) -> int | float | None:
        """How many of the rows are trained on; None is all."""
        return self.rows if self.fraction is None else self.fraction

    def product(self) -> str:
        """A model."""
        return MODEL

    def execute(self, run: Run, context: RunContext) -> RunResult:
        """Train, and put the model and its record into `out`."""
        from headcount.base.files import expanded
        from headcount.runs.opening import depends_on, name_of
        from headcount.runs.overlap import keys_of, shared_note, used_keys
        from headcount.runs.record import Record
        from headcount.runs.values import used_rows
        from headcount.training.finetune import finetune
        from headcount.training.processes import is_first

        subject = self._open(run)
        task = subject.need_task()
        rows = subject.rows_of("train")
        identity = depends_on(run, subject.model, subject.tokenizer, rows=rows)
        identity["options"]["training"] = self.training.identity()
        trained = finetune(
            subject.model,
            task,
            options=self.training,
            out=context.out,
            tokenizer=subject.tokenizer,
            device=run.model_options.device,
            limit=self.sample,
            curve_scores=self.curve_scores,
            overwrite=context.overwrite,
            report=context.report,
            logging=context.logging,
        )
        used = used_rows(rows, "train")
        if self.sample is not None:
            used = used_rows(trained.data, "train", self.training.seed)
        notes = list(task.notes)
        if trained.evaluation is not None:
            scored = keys_of(task.load(task.evaluation))
            shared = shared_note(used_keys(task, {"training": used}), scored, "held-out")
            if shared is not None and is_first():
                notes.append(shared)
                context.note(shared)
        scores = trained.evaluation
        last = [point["loss"] for point in trained.curve if "loss" in point][-1:]
        record = Record(
            run=run,
            identity=identity,
            result=TrainResult(
                model=name_of(run),
                task=task.name,
                steps=trained.steps,
                rows_trained=trained.rows,
                resumed_from=trained.resumed_from,
                last_loss=last[0] if last else None,
                evaluation=scores and EvaluationResult.of(scores),
            ),
            rows={"training": used},
            notes=tuple(notes),
            command=context.command,
            seconds=round(trained.seconds, 1),
        )
        if context.out is not None and is_first():
            record.save(expanded(context.out))
        return RunResult(record, trained)

    def plan(self, run: Run) -> dict[str, Any]:
        """What would be trained, on how much, and how."""
        from headcount.training.session import training_rows

        subject, options = self._open(run), self.training
        task = subject.need_task()
        rows = training_rows(subject.model, task, subject.tokenizer, options, self.sample)
        steps = options.steps or round(-(-len(rows) // options.batch_size) * options.epochs)
        return {
            "class": type(subject.model).__name__,
            "task": task.name,
            "rows": len(rows),
            "tokens": int(rows.lengths.sum()),
            "steps": steps,
            "options": options.to_json(),
        }

    def _open(self, run: Run) -> Subject:
        """The model with a head for the task, or from its config alone."""
        from headcount.runs.opening import name_of, task_of
        from headcount.runs.subject import Subject
        from headcount.tasks.loading import load_for_task, load_processor, require_inputs
        from headcount.tasks.vocabulary import tokenizer_for

        task, name = task_of(run), name_of(run)
        require_inputs(name, task)
        new = None if self.new_tokenizer is None else tokenizer_for(task, self.new_tokenizer)
        tokenizer = new if new is not None else load_processor(name, run.model_options.tokenizer)
        model = load_for_task(
            name,
            task,
            from_scratch=self.from_scratch,
            new_tokenizer=new,
            seed=self.training.seed,
            **run.model_options.loading,
        )
        return Subject(
            model=model,
            tokenizer=tokenizer,
            task=task,
            name=name,
            source=run.source,
            model_options=run.model_options,
        )
