"""Runs told to trackers as they go, through the callbacks that transformers has for `report_to`.

    tracker = Tracker(Logging(log_to="tensorboard"), "mrpc")
    Trainer(..., callbacks=[tracker])            # losses, and what `numbers` gives beside them
    tracker.log({"eval_accuracy": 0.8})          # after training, too
    tracker.close()
    log_run(logging, asked, scores)              # a run that has no Trainer

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

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.integrations.integration_utils import get_reporting_integration_callbacks

from headcount.base.errors import HeadcountError, in_words
from headcount.base.files import expanded
from headcount.training.logging import Logging

PROJECTS = ("WANDB_PROJECT", "MLFLOW_EXPERIMENT_NAME")
"""What names the project to those that are not told it by TrainingArguments."""


class Tracker(TrainerCallback):
    """One run in every tracker, open from the beginning of training until `close`."""

    def __init__(
        self,
        logging: Logging,
        name: str,
        *,
        numbers: Callable[[], Mapping[str, float]] = dict,
    ) -> None:
        self.logging, self.name = logging, logging.run or name
        self.numbers = numbers
        """Asked for more whenever Trainer logs: open gates."""
        self.trackers: list[Any] = []
        self._at: tuple[Any, Any, Any] | None = None
        self._foreign = False

    def on_train_begin(
        self, args: Any, state: Any, control: Any, model: Any = None, **_: Any
    ) -> None:
        """Open a run in every tracker, with the options of the training."""
        self._at = (args, state, control)
        if not self.logging or not state.is_world_process_zero:
            return
        args.run_name, args.project = self.name, self.logging.log_project
        with _environment(dict.fromkeys(PROJECTS, self.logging.log_project)):
            self.trackers = [_made(name) for name in self.logging.log_to]
            self._foreign = any(_wandb_run(each) is not None for each in self.trackers)
            for each in self.trackers:
                if hasattr(each, "logging_dir"):  # TensorBoard's; else in the folder of the model
                    each.logging_dir = str(_board(self.logging.log_project, self.name))
                each.on_train_begin(args, state, control, model=model)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """What Trainer logs, with the numbers of this moment."""
        self._at = (args, state, control)
        self.log({**(logs or {}), **self.numbers()})

    def log(self, numbers: Mapping[str, Any]) -> None:
        """Tell every tracker, at the step that training is at; what is undefined is left out."""
        defined = {
            name: value
            for name, value in numbers.items()
            if not isinstance(value, float) or math.isfinite(value)
        }
        for each in self.trackers:
            assert self._at is not None
            each.on_log(*self._at, logs=dict(defined))

    def close(self) -> None:
        """End the run, unless it is one that the caller had opened before."""
        trackers, self.trackers = self.trackers, []
        for each in trackers:
            assert self._at is not None
            each.on_train_end(*self._at)
            if (run := _wandb_run(each)) is not None and not self._foreign:
                run.finish()


def _made(name: str) -> Any:
    """The callback of transformers for a tracker; a package that is damaged is named."""
    (make,) = get_reporting_integration_callbacks([name])
    try:
        return make()
    except (ImportError, RuntimeError) as error:
        raise HeadcountError(
            f"Cannot log to {name}, which is installed and does not load: {in_words(error)}. Mend "
            "its installation, or leave it out of --log-to."
        ) from error


def log_run(logging: Logging, asked: Mapping[str, Any], numbers: Mapping[str, Any]) -> None:
    """A finished run that had no Trainer of its own, as one run with what was asked as config."""
    if not logging:
        return
    with TemporaryDirectory() as folder:
        arguments = _Asked(output_dir=folder, report_to=[], use_cpu=True)
        arguments.asked = dict(asked)
        tracker = Tracker(logging, "run")
        tracker.on_train_begin(arguments, TrainerState(), TrainerControl())
        try:
            tracker.log({f"eval_{name}": value for name, value in numbers.items()})
        finally:
            tracker.close()


class _Asked(TrainingArguments):
    """Arguments that tell a tracker what was asked, instead of how Trainer would train."""

    asked: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        return {"run_name": self.run_name, **(self.asked or {})}


def _board(project: str, name: str) -> Path:
    """Where TensorBoard finds a run: runs/PROJECT/NAME here, unless its variable says where."""
    root = expanded(os.environ.get("TENSORBOARD_LOGGING_DIR") or "runs")
    return root / _plain(project) / _plain(name)


def _plain(name: str) -> str:
    """A name that can be a folder's."""
    return re.sub(r"[^\w.+=-]+", "-", name).strip("-.") or "run"


def _wandb_run(tracker: Any) -> Any:
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
