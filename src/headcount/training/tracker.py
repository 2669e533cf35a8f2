"""Runs logged to trackers as they go, through the callbacks that transformers has for `report_to`.

    tracker = Tracker(Logging(log_to="tensorboard"), "mrpc")
    Trainer(..., callbacks=[tracker])            # losses, and what `numbers` gives beside them
    tracker.log({"eval_accuracy": 0.8})          # after training, too
    tracker.close()
    log_run(logging, options, scores)              # a run that has no Trainer

Trainer would close its own callbacks when training ends, before the model is scored, and let one
run of wandb stand for all trainings of a study.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torch import nn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.integrations.integration_utils import get_reporting_integration_callbacks

from headcount.base.errors import HeadcountError, in_words
from headcount.base.files import expanded
from headcount.training.logging import Logging

PROJECTS = ("WANDB_PROJECT", "MLFLOW_EXPERIMENT_NAME")
"""Variables that name the project to trackers that do not read it from TrainingArguments."""


class Tracker(TrainerCallback):
    """One run in every tracker, open from the beginning of training until `close`."""

    def __init__(
        self, logging: Logging, name: str, *, numbers: Callable[[], Mapping[str, float]] = dict
    ) -> None:
        self.logging, self.name = logging, logging.run or name
        self.numbers = numbers
        """Called for more numbers whenever Trainer logs, such as open gates."""
        self.trackers: list[TrainerCallback] = []
        self._at: tuple[TrainingArguments, TrainerState, TrainerControl] | None = None
        self._foreign = False

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        model: nn.Module | None = None,
        **_: object,
    ) -> None:
        """Open a run in every tracker, with the options of the training."""
        self._at = (args, state, control)
        if not self.logging or not state.is_world_process_zero:
            return
        args.run_name, args.project = self.name, self.logging.log_project
        with _environment(dict.fromkeys(PROJECTS, self.logging.log_project)):
            self.trackers = [_callback(name) for name in self.logging.log_to]
            self._foreign = any(_wandb_run(tracker) is not None for tracker in self.trackers)
            for tracker in self.trackers:
                if hasattr(
                    tracker, "logging_dir"
                ):  # TensorBoard's; else in the folder of the model
                    folder = str(_board(self.logging.log_project, self.name))
                    tracker.logging_dir = folder  # pyright: ignore[reportAttributeAccessIssue]
                tracker.on_train_begin(args, state, control, model=model)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, object] | None = None,
        **_: object,
    ) -> None:
        """What Trainer logs, with the numbers of this moment."""
        self._at = (args, state, control)
        self.log({**(logs or {}), **self.numbers()})

    def log(self, numbers: Mapping[str, object]) -> None:
        """To every tracker, at the current step; what is undefined is left out."""
        defined = {
            name: value
            for name, value in numbers.items()
            if not isinstance(value, float) or math.isfinite(value)
        }
        for tracker in self.trackers:
            assert self._at is not None
            tracker.on_log(*self._at, logs=dict(defined))

    def close(self) -> None:
        """End the run, unless it is one that the caller had opened before."""
        trackers, self.trackers = self.trackers, []
        for tracker in trackers:
            assert self._at is not None
            tracker.on_train_end(*self._at)
            if (run := _wandb_run(tracker)) is not None and not self._foreign:
                run.finish()


def _callback(name: str) -> TrainerCallback:
    """The callback of transformers for a tracker; a package that is damaged is named."""
    (make,) = get_reporting_integration_callbacks([name])
    try:
        return make()
    except (ImportError, RuntimeError) as error:
        raise HeadcountError(
            f"Cannot log to {name}, which is installed and does not load: {in_words(error)}. Mend "
            "its installation, or leave it out of --log-to."
        ) from error


def log_run(logging: Logging, options: Mapping[str, object], numbers: Mapping[str, object]) -> None:
    """A finished run that had no Trainer, as one run with its options as config."""
    if not logging:
        return
    with TemporaryDirectory() as folder:
        arguments = _RunArguments(output_dir=folder, report_to=[], use_cpu=True)
        arguments.run_options = dict(options)
        tracker = Tracker(logging, "run")
        tracker.on_train_begin(arguments, TrainerState(), TrainerControl())
        try:
            tracker.log({f"eval_{name}": value for name, value in numbers.items()})
        finally:
            tracker.close()


class _RunArguments(TrainingArguments):
    """Arguments that give a tracker the options of a run, instead of those of Trainer."""

    run_options: Mapping[str, object] | None = None

    def to_dict(self) -> dict[str, object]:
        return {"run_name": self.run_name, **(self.run_options or {})}


def _board(project: str, name: str) -> Path:
    """Where TensorBoard finds a run: runs/PROJECT/NAME here, unless its variable says where."""
    root = expanded(os.environ.get("TENSORBOARD_LOGGING_DIR") or "runs")
    return root / _plain(project) / _plain(name)


def _plain(name: str) -> str:
    """A name that can be a folder's."""
    return re.sub(r"[^\w.+=-]+", "-", name).strip("-.") or "run"


def _wandb_run(tracker: TrainerCallback) -> Any:
    """The run that wandb is at, where the tracker is wandb's."""
    return getattr(getattr(tracker, "_wandb", None), "run", None)


@contextmanager
def _environment(usual: Mapping[str, str]) -> Generator[None]:
    """Inside, these variables are set where the user has not set them."""
    added = [name for name in usual if name not in os.environ]
    os.environ.update({name: usual[name] for name in added})
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]
