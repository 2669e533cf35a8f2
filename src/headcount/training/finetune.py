"""Train a model on a task: `hc.finetune(model, "sst2", out="run")`.

Works on dense, gated and removed models alike; the model is trained in place. With a folder the
run survives a crash: the same call again goes on from the last checkpoint.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, TrainingArguments

from headcount.errors import HeadcountError, UsageError
from headcount.files import read_json, require_fields, write_json
from headcount.models.devices import pick_device
from headcount.models.dropout import set_dropout
from headcount.models.find import unwrap
from headcount.models.fingerprint import identity, versions
from headcount.models.freezing import frozen
from headcount.tasks import Task, open_task
from headcount.tasks.encoding import Encoded
from headcount.tasks.loading import class_order, match, room, tokenizer_of
from headcount.tasks.sampling import rows_of
from headcount.tasks.task import Limit
from headcount.text import line
from headcount.training import checkpoints
from headcount.training.curve import FILE as CURVE
from headcount.training.curve import Curve, Point, read_curve
from headcount.training.evaluate import evaluate
from headcount.training.evaluation import Evaluation
from headcount.training.options import TrainOptions
from headcount.training.order import Rows
from headcount.training.runs import own_randomness, run_folder, save_model, settings_of, take_up
from headcount.training.scoring import Scoring
from headcount.training.trainer import DivergedError, TaskTrainer, training_arguments


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What a training run came to."""

    model: PreTrainedModel = field(repr=False)
    steps: int
    rows: int
    """Rows trained on."""
    seconds: float
    curve: tuple[Point, ...] = field(repr=False)
    evaluation: Evaluation | None = None
    resumed_from: int | None = None
    """The step a killed run went on from; None when it ran in one go."""
    out: Path | None = None

    def __repr__(self) -> str:
        done = f"{self.steps} steps on {self.rows} rows in {self.seconds:.1f} s"
        scored = f"; {self.evaluation.scores[0]}" if self.evaluation else ""
        return line(f"Trained({done}{scored})")

    def to_json(self) -> dict[str, Any]:
        """A plain dict, without the weights."""
        return {
            "steps": self.steps,
            "rows": self.rows,
            "seconds": round(self.seconds, 3),
            "resumed_from": self.resumed_from,
            "evaluation": self.evaluation.to_json() if self.evaluation else None,
        }


def finetune(
    model: PreTrainedModel,
    task: str | Task,
    *,
    options: TrainOptions | None = None,
    out: str | Path | None = None,
    work: str | Path | None = None,
    tokenizer: Any = None,
    device: str = "auto",
    limit: Limit = None,
    evaluation: bool = True,
    curve_scores: bool = False,
    overwrite: bool = False,
    report: Callable[[int, int, Point], None] | None = None,
) -> Trained:
    """Train `model` in place on the task's train split, then score it on its dev split.

    `out` is a folder for the finished model, in which a killed run goes on. `work`, in its place,
    is one for the caller to delete: a killed run goes on there, and a finished one is given again,
    but there is no model to load. `limit` trains on a seeded sample of the rows. `curve_scores`
    adds the dev score after every epoch to the learning curve. `report` is called with (step, all
    steps, newest point).
    """
    if out is not None and work is not None:
        raise UsageError("Pass out or work, not both: a run has one folder.")
    options = options or TrainOptions()
    task = open_task(task)
    tokenizer = tokenizer if tokenizer is not None else tokenizer_of(model)
    match(model, tokenizer)
    home = work if out is None else out
    given = {} if home is None else identity(model, tokenizer)
    set_dropout(model, attention=options.attention_dropout, hidden=options.hidden_dropout)
    encoded = training_rows(model, task, tokenizer, options, limit)
    started = time.monotonic()
    with run_folder(home) as folder, own_randomness():
        arguments = training_arguments(options, str(folder), device=pick_device(device))
        arguments.per_device_train_batch_size = per_process(options, arguments.world_size)
        run = _Run(
            model, task, tokenizer, options, arguments, folder=None if home is None else folder
        )
        if run.folder is not None:
            scored = {"evaluation": evaluation, "curve_scores": curve_scores}
            settings = settings_of(given, task, encoded, options, scored=any(scored.values()))
            anew = {} if out is None else {"anew": "--overwrite to start anew"}
            with arguments.main_process_first():
                run.checkpoint = take_up(
                    folder, {**settings, **scored}, arguments, overwrite=overwrite, **anew
                )
            if (folder / checkpoints.RESULT).is_file():
                return run.finished(rows=len(encoded), out=out is not None)
        masking = tokenizer if task.kind == "masked-lm" else None
        run.train(Rows(encoded, seed=options.seed, mask_with=masking), curve_scores, report)
        return run.end(started, evaluation=evaluation, out=out is not None)


@dataclass
class _Run:
    """A training under way, in a folder where there is one."""

    model: PreTrainedModel
    task: Task
    tokenizer: Any
    options: TrainOptions
    arguments: TrainingArguments
    folder: Path | None = None
    checkpoint: Path | None = None

    def train(self, rows: Rows, curve_scores: bool, report: Any) -> None:
        """All steps that are left."""
        options, folder = self.options, self.folder
        self.curve = Curve(
            None if folder is None else folder / CURVE,
            score=self._points if curve_scores else None,
            report=report,
        )
        saver = checkpoints.Saver(options.save_every, options.save_minutes)
        self.trainer = TaskTrainer(
            model=self.model, args=self.arguments, kind=self.task.kind, options=options, rows=rows,
            curve=self.curve, callbacks=[] if folder is None else [saver],
        )  # fmt: skip
        try:
            with frozen(self.model, options.freeze):
                go_on(self.trainer, self.checkpoint)
        except DivergedError as error:
            kept = checkpoints.last_checkpoint(folder) if folder else None
            where = "No checkpoint was saved yet."
            where = f"The last good checkpoint is '{kept}'." if kept else where
            raise HeadcountError(
                f"{error} {where} Try a lower learning rate, a warm-up or --precision fp32."
            ) from error
        finally:
            leave(self.trainer, self.model, options)

    def end(self, started: float, *, evaluation: bool, out: bool) -> Trained:
        """Score, and leave the files; the result last, then the checkpoints go."""
        trainer, found = self.trainer, None
        first = trainer.is_world_process_zero()
        if evaluation and first and self.task.evaluation != "train":
            found = self._evaluate()
        trained = Trained(
            model=self.model,
            steps=trainer.state.global_step,
            rows=len(trainer.train_dataset),  # pyright: ignore[reportArgumentType]
            seconds=time.monotonic() - started,
            curve=tuple(self.curve.points),
            evaluation=found,
            resumed_from=checkpoints.step_of(self.checkpoint),
            out=self.folder if out else None,
        )
        if self.folder is not None and first:
            if out:
                save_model(self.model, self.tokenizer, self.folder)
            else:
                checkpoints.save_weights(self.model, self.folder)
            write_json(
                self.folder / checkpoints.RESULT, {**trained.to_json(), "versions": versions()}
            )
            checkpoints.drop_checkpoints(self.folder)
        trainer.accelerator.wait_for_everyone()
        return trained

    def finished(self, *, rows: int, out: bool) -> Trained:
        """The result of a run that was done before, its weights loaded into the model."""
        assert self.folder is not None
        result = read_json(self.folder / checkpoints.RESULT, "result of a run")
        types = {"steps": int, "seconds": float, "resumed_from": int | None, "evaluation": Any}
        require_fields(result, types, f"{self.folder / checkpoints.RESULT} is no result of a run")
        if out:
            for file in sorted(self.folder.glob("*.safetensors")):
                try:
                    weights = checkpoints.read_weights(file)
                    unwrap(self.model).load_state_dict(weights, strict=False)
                except RuntimeError as error:
                    raise UsageError(f"{file} has other weights than the model.") from error
        else:
            checkpoints.load_weights(self.model, self.folder)
        found = result["evaluation"]
        return Trained(
            model=self.model.eval(),
            steps=result["steps"],
            rows=rows,
            seconds=result["seconds"],
            curve=tuple(read_curve(self.folder / CURVE)),
            evaluation=Evaluation.from_json(found) if found else None,
            resumed_from=result["resumed_from"],
            out=self.folder if out else None,
        )

    def _points(self) -> Point:
        return {each.metric: each.value for each in self._evaluate(Scoring(draws=0)).scores}

    def _evaluate(self, scoring: Scoring = Scoring()) -> Evaluation:  # noqa: B008
        scoring = replace(scoring, max_length=self.options.max_length, seed=self.options.seed)
        return evaluate(self.model, self.task, tokenizer=self.tokenizer, scoring=scoring)


def training_rows(
    model: PreTrainedModel, task: Task, tokenizer: Any, options: TrainOptions, limit: Limit
) -> Encoded:
    """The task's train split as tokens, with labels in the model's own numbers."""
    if "train" not in task.splits:
        raise UsageError(f"Task '{task.name}' has no train split: pass --train FILE as well.")
    length = room(model, options.max_length)
    how = {"limit": limit, "seed": options.seed, "max_length": length}
    examples, rows = rows_of(task, tokenizer, "train", **how, masked=False)
    if task.kind == "classification":
        assert examples.labels is not None
        labels = class_order(model, task, examples.labels)[examples.labels]
        return Encoded(rows.columns, labels, rows.padding, rows.left)
    return rows


def per_process(options: TrainOptions, processes: int) -> int:
    """Rows of one piece on one process; the batch must come out even."""
    pieces = options.accumulate * processes
    if options.batch_size % pieces:
        raise UsageError(
            f"A batch of {options.batch_size} rows cannot be cut evenly into {options.accumulate} "
            f"pieces for {processes} processes."
        )
    return options.batch_size // pieces


def go_on(trainer: TaskTrainer, checkpoint: Path | None) -> None:
    """Train from the checkpoint, or from the start."""
    trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))


def leave(trainer: TaskTrainer, model: PreTrainedModel, options: TrainOptions) -> None:
    """Take off the model what Trainer put on it."""
    trainer.accelerator.unwrap_model(trainer.model_wrapped, keep_fp32_wrapper=False)
    if options.gradient_checkpointing:
        model.gradient_checkpointing_disable()
    if trainer.cached is not None:
        model.config.use_cache = trainer.cached
    model.zero_grad(set_to_none=True)
    model.eval()
