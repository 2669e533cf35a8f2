"""Train gates and weights together on a task, and come out with a mask and trained weights.

    found = learn(model, "mrpc", StraightThrough(), ratio=0.5, train=TrainOptions(epochs=2))
    small = hc.remove(found.model, found.mask)

The model given stays as it is: a copy is trained. With a folder the run survives a crash: the
same call again goes on from the last checkpoint.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, TrainingArguments

from headcount.errors import HeadcountError, UsageError
from headcount.files import write_json
from headcount.heads import Layout, Scores
from headcount.learned.gap import gap_measure, score_measure
from headcount.learned.keeper import AllClosedError, Keeper
from headcount.learned.methods import GateOptions
from headcount.learned.result import Learned, examples_seen, finished
from headcount.models.devices import pick_device
from headcount.models.dropout import set_dropout
from headcount.models.find import layout as layout_of_model
from headcount.models.fingerprint import identity
from headcount.models.freezing import frozen
from headcount.options import to_plain
from headcount.pruning.choose import keep_best
from headcount.tasks import Task, open_task
from headcount.tasks.loading import match, tokenizer_of
from headcount.training import checkpoints
from headcount.training.curve import FILE as CURVE
from headcount.training.curve import Curve, Point
from headcount.training.finetune import go_on, leave, per_process, training_rows
from headcount.training.options import TrainOptions
from headcount.training.order import Rows
from headcount.training.runs import own_randomness, run_folder, settings_of, take_up
from headcount.training.trainer import DivergedError, TaskTrainer, training_arguments


def learn(
    model: PreTrainedModel,
    task: str | Task,
    gates: GateOptions,
    ratio: float | None = None,
    *,
    train: TrainOptions | None = None,
    tokenizer: Any = None,
    device: str = "auto",
    out: str | Path | None = None,
    gap: int = 3,
    report: Callable[[int, int, Point], None] | None = None,
) -> Learned:
    """Train a copy of `model` with gates on the task's train split.

    `ratio` is met exactly; without it μ and the gates' learning rate decide how many heads stay.
    The seed of `train` is also that of the gates. `gap` is the number of draws behind the
    training score of noisy gates; 0 does not measure the gap.
    """
    options = train or TrainOptions()
    task = open_task(task)
    tokenizer = tokenizer if tokenizer is not None else tokenizer_of(model)
    match(model, tokenizer)
    layout = layout_of_model(model)
    keep = None if ratio is None else reachable(layout, gates.name, ratio)
    own = copy.deepcopy(model)
    set_dropout(own, attention=options.attention_dropout, hidden=options.hidden_dropout)
    encoded = training_rows(own, task, tokenizer, options, None)
    score = None
    if gates.score_points:
        score = score_measure(own, task, tokenizer, options, rows=gates.score_rows)
    about = {
        "method": gates.name,
        "ratio": ratio,
        **to_plain(gates),
        **settings_of(
            identity(model, tokenizer), task, encoded, options,
            scored=bool(gap or gates.score_points),
        ),
        "gap_draws": gap,
    }  # fmt: skip
    with run_folder(out) as folder, own_randomness():
        arguments = training_arguments(options, str(folder), device=pick_device(device))
        arguments.per_device_train_batch_size = per_process(options, arguments.world_size)
        checkpoint = None
        if out is not None:
            with arguments.main_process_first():
                checkpoint = take_up(folder, about, arguments)
            if (before := finished(own, folder)) is not None:
                return before
        masking = tokenizer if task.kind == "masked-lm" else None
        run = _Run(
            trainer_for=(own, task, options),
            rows=Rows(encoded, seed=options.seed, mask_with=masking),
            keeper=Keeper(layout, gates, keep=keep, seed=options.seed, device=arguments.device),
            curve=Curve(None if out is None else folder / CURVE, report=report),
            arguments=arguments,
        )
        run.keeper.trace.about = {key: said for key, said in about.items() if key != "config"}
        if gap:
            run.keeper.measure_gap = gap_measure(own, task, tokenizer, options, draws=gap)
        run.keeper.measure_score = score
        return run.go(checkpoint, folder if out is not None else None)


def reachable(layout: Layout, method: str, ratio: float) -> int:
    """How many heads stay; refused before training where it cannot be exactly so many."""
    keep = layout.kept_at(ratio)
    if not keep:
        raise UsageError(
            f"A ratio of {ratio} leaves no head, so '{method}' would have no open gate to learn "
            "with: ask for less, or remove all heads with the method 'layers'."
        )
    keep_best(Scores(layout, (0.0,) * len(layout)), keep)
    return keep


class _Run:
    """A Trainer with a keeper of gates."""

    def __init__(
        self,
        *,
        trainer_for: tuple[PreTrainedModel, Task, TrainOptions],
        rows: Rows,
        keeper: Keeper,
        curve: Curve,
        arguments: TrainingArguments,
    ) -> None:
        self.model, task, self.options = trainer_for
        self.rows, self.keeper, self.curve = rows, keeper, curve
        saver = checkpoints.Saver(self.options.save_every, self.options.save_minutes)
        self.trainer = TaskTrainer(
            model=self.model, args=arguments, kind=task.kind, options=self.options, rows=rows,
            curve=curve,
            # the keeper writes into a checkpoint before the saver marks it as whole
            callbacks=[keeper] if curve.path is None else [keeper, saver],
        )  # fmt: skip
        if (scaler := getattr(self.trainer.accelerator, "scaler", None)) is not None:
            keeper.scale = scaler.get_scale

    def go(self, checkpoint: Path | None, folder: Path | None) -> Learned:
        """Train, and keep what came of it where there is a folder."""
        started = time.monotonic()
        self._train(checkpoint, folder)
        keeper, steps = self.keeper, self.trainer.state.global_step
        assert keeper.mask is not None
        keeper.trace.about["route"] = keeper.route
        keeper.trace.add_losses(self.curve.points)
        found = Learned(
            model=self.model,
            mask=keeper.mask,
            trace=keeper.trace,
            steps=steps,
            rows=len(self.rows),
            examples=examples_seen(len(self.rows), self.options.batch_size, steps),
            seconds=time.monotonic() - started,
            route=keeper.route,
            gap=keeper.gap,
            resumed_from=checkpoints.step_of(checkpoint),
        )
        if folder is not None and self.trainer.is_world_process_zero():
            found.save(folder)
        self.trainer.accelerator.wait_for_everyone()
        return found

    def _train(self, checkpoint: Path | None, folder: Path | None) -> None:
        trainer, model = self.trainer, self.model
        try:
            with self.keeper.attached(model), frozen(model, self.options.freeze):
                go_on(trainer, checkpoint)
        except DivergedError as error:
            raise HeadcountError(
                f"{error} Try a lower learning rate of the weights or of the gates, or a warm-up."
            ) from error
        except AllClosedError as error:
            error.model = model
            if folder is not None and trainer.is_world_process_zero():
                write_json(folder / "last-open.json", error.mask.to_json())
            raise
        finally:
            leave(trainer, model, self.options)
