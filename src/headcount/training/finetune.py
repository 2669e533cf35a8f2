"""Train a model on a task: `hc.finetune(model, "sst2", out="run")`.

Works on dense, gated and removed models alike; the model is trained in place. With a folder the
run survives a crash: the same call again goes on from the last checkpoint.
"""

from __future__ import annotations

import json
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel, TrainingArguments

from headcount.errors import HeadcountError, UsageError
from headcount.models.find import unwrap
from headcount.models.fingerprint import weights_fingerprint
from headcount.models.pruned import whole_folder
from headcount.tasks import Task, open_task
from headcount.tasks.encoding import Encoded, rows_fingerprint
from headcount.tasks.sampling import rows_of
from headcount.tasks.task import Limit
from headcount.training import checkpoints
from headcount.training.curve import Curve, Point
from headcount.training.devices import pick_device
from headcount.training.dropout import set_dropout
from headcount.training.evaluate import Evaluation, evaluate
from headcount.training.freezing import frozen
from headcount.training.loading import class_order, match, room, tokenizer_of
from headcount.training.options import TrainOptions
from headcount.training.order import Rows
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
    tokenizer: Any = None,
    device: str = "auto",
    limit: Limit = None,
    evaluation: bool = True,
    curve_scores: bool = False,
    overwrite: bool = False,
    report: Callable[[int, int, Point], None] | None = None,
) -> Trained:
    """Train `model` in place on the task's train split, then score it on its dev split.

    `limit` trains on a seeded sample of the rows. `curve_scores` adds the dev score after every
    epoch to the learning curve. `report` is called with (step, all steps, newest point).
    """
    options = options or TrainOptions()
    task = open_task(task)
    tokenizer = tokenizer if tokenizer is not None else tokenizer_of(model)
    match(model, tokenizer)
    set_dropout(model, attention=options.attention_dropout, hidden=options.hidden_dropout)
    encoded = training_rows(model, task, tokenizer, options, limit)
    masking = tokenizer if task.kind == "masked-lm" else None
    rows = Rows(encoded, seed=options.seed, mask_with=masking)
    started = time.monotonic()
    with run_folder(out) as folder, own_randomness():
        arguments = training_arguments(
            options, str(folder), device=pick_device(device), saving=out is not None
        )
        arguments.per_device_train_batch_size = per_process(options, arguments.world_size)
        checkpoint = None
        if out is not None:
            settings = _settings(model, task, encoded, options)
            with arguments.main_process_first():
                checkpoint = take_up(folder, settings, arguments, overwrite=overwrite)
        if (folder / checkpoints.RESULT).is_file():
            return _finished(model, folder, len(rows))

        def scores() -> Point:
            found = evaluate(model, task, tokenizer=tokenizer, draws=0, **_same(options))
            return {each.metric: each.value for each in found.scores}

        curve = Curve(
            folder / "curve.jsonl" if out is not None else None,
            score=scores if curve_scores else None,
            report=report,
        )
        trainer = TaskTrainer(
            model=model, args=arguments, kind=task.kind, options=options, rows=rows,
            callbacks=[curve, checkpoints.MarkWhole()],
        )  # fmt: skip
        _run(trainer, model, options, checkpoint, folder if out is not None else None)
        first = trainer.is_world_process_zero()
        found = None
        if evaluation and first and task.evaluation != "train":
            found = evaluate(model, task, tokenizer=tokenizer, **_same(options))
        trained = Trained(
            model=model,
            steps=trainer.state.global_step,
            rows=len(rows),
            seconds=time.monotonic() - started,
            curve=tuple(curve.points),
            evaluation=found,
            resumed_from=int(checkpoint.name.split("-")[1]) if checkpoint else None,
            out=folder if out is not None else None,
        )
        if out is not None and first:
            _save(trained, tokenizer, folder)
        trainer.accelerator.wait_for_everyone()
        return trained


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


def _run(
    trainer: TaskTrainer,
    model: PreTrainedModel,
    options: TrainOptions,
    checkpoint: Path | None,
    folder: Path | None,
) -> None:
    try:
        with frozen(model, options.freeze):
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    except DivergedError as error:
        kept = checkpoints.last_checkpoint(folder) if folder else None
        where = f"The last good checkpoint is '{kept}'." if kept else "No checkpoint was saved yet."
        raise HeadcountError(
            f"{error} {where} Try a lower learning rate, a warm-up or --precision fp32."
        ) from error
    finally:
        leave(trainer, model, options)


def leave(trainer: TaskTrainer, model: PreTrainedModel, options: TrainOptions) -> None:
    """Take off the model what Trainer put on it."""
    trainer.accelerator.unwrap_model(trainer.model_wrapped, keep_fp32_wrapper=False)
    if options.gradient_checkpointing:
        model.gradient_checkpointing_disable()
    model.zero_grad(set_to_none=True)
    model.eval()


def take_up(
    folder: Path, settings: dict[str, Any], arguments: TrainingArguments, *, overwrite: bool = False
) -> Path | None:
    """Check what is in the folder against what is asked, and find where to go on."""
    first = arguments.process_index == 0
    if overwrite and first:
        checkpoints.clear(folder)
    checkpoints.require_same_settings(folder, settings)
    if first:
        checkpoints.write_json(folder / checkpoints.SETTINGS, settings)
    return checkpoints.last_checkpoint(folder, arguments.world_size)


def _finished(model: PreTrainedModel, folder: Path, rows: int) -> Trained:
    """The result of a run that was done before, its weights loaded into the model."""
    from safetensors.torch import load_file

    for file in sorted(folder.glob("*.safetensors")):
        unwrap(model).load_state_dict(load_file(file), strict=False)
    result = json.loads((folder / checkpoints.RESULT).read_text(encoding="utf-8"))
    found = result["evaluation"]
    lines = (folder / "curve.jsonl").read_text(encoding="utf-8").splitlines()
    return Trained(
        model=model.eval(),
        steps=result["steps"],
        rows=rows,
        seconds=result["seconds"],
        curve=tuple(json.loads(line) for line in lines),
        evaluation=Evaluation.from_json(found) if found else None,
        resumed_from=result["resumed_from"],
        out=folder,
    )


def _save(trained: Trained, tokenizer: Any, folder: Path) -> None:
    """The model and its tokenizer, then the result, then the checkpoints go."""
    with whole_folder(folder) as made:
        trained.model.save_pretrained(made)
        tokenizer.save_pretrained(made)
    checkpoints.write_json(folder / checkpoints.RESULT, trained.to_json())
    for path in folder.glob("checkpoint-*"):
        shutil.rmtree(path)


def _settings(
    model: PreTrainedModel, task: Task, rows: Encoded, options: TrainOptions
) -> dict[str, Any]:
    """What a run depends on, by name; two runs with the same settings end in the same weights."""
    return {
        "model": f"{type(model).__name__} {weights_fingerprint(model)}",
        "task": task.name,
        "data": rows_fingerprint(rows),
        **options.to_json(),
    }


def _same(options: TrainOptions) -> dict[str, Any]:
    return {"max_length": options.max_length, "seed": options.seed}


@contextmanager
def run_folder(out: str | Path | None) -> Generator[Path]:
    """The run's folder, or one that is gone afterwards."""
    if out is None:
        with tempfile.TemporaryDirectory(prefix="headcount-") as made:
            yield Path(made)
    else:
        folder = Path(out).expanduser()
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"'{folder}' is a file, not a folder to train into.")
        folder.mkdir(parents=True, exist_ok=True)
        yield folder


@contextmanager
def own_randomness() -> Generator[None]:
    """Trainer seeds every global generator: put their states back afterwards."""
    python, numpy = random.getstate(), np.random.get_state()
    with torch.random.fork_rng():
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
