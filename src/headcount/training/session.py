"""One training, whatever is trained: rows, folder, checkpoints, curve and Trainer.

    session = Session(model, task, tokenizer, options)
    with session.opened(folder, session.settings(scored=True), device="auto"):
        session.set_up(report=report)
        session.train(advice="Try a lower learning rate.")
        session.finish(result.save)

`finetune` trains weights this way, `learned.run.learn` gates beside them. A killed session goes on
from its last checkpoint when it is started again, in the same number of processes or not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from transformers import (
    PreTrainedModel,
    PreTrainedTokenizerBase,
    TrainerCallback,
    TrainingArguments,
)

from headcount.base.errors import HeadcountError, UsageError
from headcount.models.devices import pick_device
from headcount.models.dropout import set_dropout
from headcount.models.fingerprint import identity
from headcount.models.freezing import frozen
from headcount.tasks import Task, open_task
from headcount.tasks.encoding import EncodedRows
from headcount.tasks.kinds import task_kind
from headcount.tasks.loading import match, processor_of
from headcount.tasks.rows import in_model_numbers, rows_of
from headcount.tasks.task import Limit
from headcount.training import checkpoints
from headcount.training.curve import FILE as CURVE
from headcount.training.curve import LearningCurve, Point
from headcount.training.logging import Logging
from headcount.training.options import TrainOptions
from headcount.training.order import TrainingRows
from headcount.training.runs import own_randomness, run_folder, settings_of, take_up
from headcount.training.tracker import Tracker
from headcount.training.trainer import (
    DivergedError,
    TaskTrainer,
    require_trainable,
    training_arguments,
)

Report = Callable[[int, int, Point], None]
"""Called with (step, all steps, newest point of the learning curve)."""


class Session:
    """A model, the rows it is trained on, and how; in a folder where there is one."""

    trainer: TaskTrainer
    curve: LearningCurve
    arguments: TrainingArguments

    def __init__(
        self,
        model: PreTrainedModel,
        task: str | Task,
        tokenizer: PreTrainedTokenizerBase | None,
        options: TrainOptions,
        *,
        limit: Limit = None,
        rows: EncodedRows | None = None,
        logging: Logging | None = None,
    ) -> None:
        """On the task's train split; or on `rows`, which stay as they are in every epoch."""
        self.model, self.options = model, options
        self.logging = logging or Logging()
        self.task = open_task(task)
        self.given = rows is not None
        if rows is None:
            tokenizer = tokenizer if tokenizer is not None else processor_of(model)
            match(model, tokenizer)
            rows = training_rows(model, self.task, tokenizer, options, limit)
        self.tokenizer: Any = tokenizer
        self.encoded = rows
        self.folder: Path | None = None
        """Where it can be resumed; None keeps nothing."""
        self.checkpoint: Path | None = None
        """Where it goes on from."""
        self.tracker: Tracker | None = None
        """Gets losses and scores, where the session is logged."""
        self._started = time.monotonic()

    def settings(self, *, scored: bool) -> dict[str, object]:
        """What the session depends on, by name; called before it is opened, as the model came."""
        given = identity(self.model, self.tokenizer)
        return settings_of(given, self.task, self.encoded, self.options, scored=scored)

    @contextmanager
    def opened(
        self,
        home: str | Path | None,
        settings: dict[str, object],
        *,
        device: str,
        overwrite: bool = False,
        anew: str = "delete it to start over",
    ) -> Generator[None]:
        """Inside, the folder is held, and what is in it was checked against the settings.

        `anew` tells the user how to start over where the settings are others.
        """
        options = self.options
        require_trainable(self.model, pick_device(device), options)
        set_dropout(self.model, attention=options.attention_dropout, hidden=options.hidden_dropout)
        with run_folder(home) as folder, own_randomness():
            arguments = training_arguments(options, str(folder), device=pick_device(device))
            arguments.per_device_train_batch_size = per_process(options, arguments.world_size)
            self.arguments = arguments
            if home is not None:
                self.folder = folder
                with arguments.main_process_first():
                    self.checkpoint = take_up(
                        folder, settings, arguments, overwrite=overwrite, anew=anew
                    )
            try:
                yield
            finally:
                if self.tracker is not None:
                    self.tracker.close()

    @property
    def is_done(self) -> bool:
        """Whether the folder has the result of this very session."""
        return self.folder is not None and (self.folder / checkpoints.RESULT).is_file()

    @property
    def resumed_from(self) -> int | None:
        """The step it went on from."""
        return None if self.checkpoint is None else checkpoints.step_of(self.checkpoint)

    @property
    def is_first(self) -> bool:
        """Whether this process writes for all."""
        return self.trainer.is_world_process_zero()

    @property
    def seconds(self) -> float:
        """Since the rows were there."""
        return time.monotonic() - self._started

    @property
    def loss_scale(self) -> Callable[[], float] | None:
        """What the loss is multiplied by before its gradients are taken (fp16), or None."""
        scaler: Any = getattr(self.trainer.accelerator, "scaler", None)
        return None if scaler is None else scaler.get_scale

    def set_up(
        self,
        *,
        callbacks: Sequence[TrainerCallback] = (),
        score: Callable[[], Point] | None = None,
        report: Report | None = None,
        numbers: Callable[[], Mapping[str, float]] = dict,
        trainer: Callable[..., TaskTrainer] = TaskTrainer,
    ) -> None:
        """Make the Trainer; `score` adds numbers to the learning curve after every epoch.

        `numbers` are logged beside every loss. `trainer` has the loss, the task's by default.
        """
        options, path = self.options, None if self.folder is None else self.folder / CURVE
        self.curve = LearningCurve(path, score=score, report=report)
        if self.logging:
            name = self.task.name if self.folder is None else self.folder.name
            self.tracker = Tracker(self.logging, name, numbers=numbers)
            callbacks = [*callbacks, self.tracker]
            self.curve.score = None if score is None else self._logged(score)
        # the others write into a checkpoint before the saver marks it as whole
        savers = [checkpoints.Saver(options.save_every, options.save_minutes)]
        kind = task_kind(self.task.kind)
        drawn_by = None if self.given else kind
        self.trainer = trainer(
            model=self.model,
            args=self.arguments,
            kind=kind,
            options=options,
            rows=TrainingRows(self.encoded, drawn_by, self.tokenizer, seed=options.seed),
            curve=self.curve,
            callbacks=[*callbacks, *([] if self.folder is None else savers)],
        )

    def _logged(self, score: Callable[[], Point]) -> Callable[[], Point]:
        def scored() -> Point:
            point = score()
            self.log(point)
            return point

        return scored

    def log(self, scores: Mapping[str, float]) -> None:
        """Scores, to where the session is logged."""
        if self.tracker is not None:
            self.tracker.log({f"eval_{name}": value for name, value in scores.items()})

    def train(self, *, advice: str, attached: AbstractContextManager[None] | None = None) -> None:
        """All steps that are left; `advice` is for a loss that is NaN or infinite."""
        checkpoint = None if self.checkpoint is None else str(self.checkpoint)
        try:
            with attached or nullcontext(), frozen(self.model, self.options.freeze):
                self.trainer.train(resume_from_checkpoint=checkpoint)
        except DivergedError as error:
            kept = None if self.folder is None else checkpoints.last_checkpoint(self.folder)
            where = "No checkpoint was saved yet."
            where = where if kept is None else f"The last good checkpoint is '{kept}'."
            raise HeadcountError(f"{error} {where} {advice}") from error
        finally:
            self._leave()

    def finish(self, save: Callable[[Path], None]) -> None:
        """Leave the files, the result last, then the checkpoints go; processes wait for it."""
        if self.folder is not None and self.is_first:
            save(self.folder)
            checkpoints.drop_checkpoints(self.folder)
        self.trainer.accelerator.wait_for_everyone()

    def _leave(self) -> None:
        """Take off the model what Trainer put on it."""
        trainer, model = self.trainer, self.model
        trainer.accelerator.unwrap_model(trainer.model_wrapped, keep_fp32_wrapper=False)
        if self.options.gradient_checkpointing:
            model.gradient_checkpointing_disable()
        if trainer.cached is not None:
            model.config.use_cache = trainer.cached
        model.zero_grad(set_to_none=True)
        model.eval()


def training_rows(
    model: PreTrainedModel,
    task: Task,
    tokenizer: PreTrainedTokenizerBase,
    options: TrainOptions,
    limit: Limit,
) -> EncodedRows:
    """The task's train split as tokens, with labels in the model's own numbers."""
    if "train" not in task.splits:
        raise UsageError(f"Task '{task.name}' has no train split: pass --train FILE as well.")
    examples, rows = rows_of(
        model,
        task,
        tokenizer,
        "train",
        limit=limit,
        seed=options.seed,
        max_length=options.max_length,
        masked=False,
    )
    return in_model_numbers(model, task, examples, rows)


def per_process(options: TrainOptions, processes: int) -> int:
    """Rows of one piece on one process; the batch must come out even."""
    pieces = options.accumulate * processes
    if options.batch_size % pieces:
        raise UsageError(
            f"A batch of {options.batch_size} rows cannot be cut evenly into {options.accumulate} "
            f"pieces for {processes} processes."
        )
    return options.batch_size // pieces
