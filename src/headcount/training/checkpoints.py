"""What a run leaves in its folder, so that a killed run goes on where it was.

    settings.json       what the run depends on; one with other settings is refused
    curve.jsonl         the learning curve
    checkpoint-120/     weights, optimizer, schedule and random states; whole once marked so
    weights.safetensors what it came to, where the finished model is not wanted in the folder
    result.json         written last: the run is done

The finished model itself lies in the folder of `headcount train`, ready for `headcount evaluate`.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from headcount.base.errors import NotFoundError, UsageError
from headcount.base.files import read_json, require_file, share, whole, write_json
from headcount.base.header import header
from headcount.base.text import short
from headcount.models.fingerprint import differences, versions
from headcount.training.curve import FILE as CURVE
from headcount.training.processes import first_says

MARK = "whole.json"
SETTINGS = "settings.json"
RESULT = "result.json"
WEIGHTS = "weights.safetensors"
VERSIONS = "versions"


def require_same_settings(
    folder: Path, settings: Mapping[str, object], anew: str = "--overwrite to start over"
) -> None:
    """Refuse to go on with a run that was started with other settings, naming them.

    `anew` is how the user can start again; the versions a run began with are no reason to refuse.
    """
    path = folder / SETTINGS
    if not path.is_file():
        return
    then = read_json(path, "settings of a run")
    if not isinstance(then, dict):
        raise UsageError(f"{path} is no settings of a run: delete it, or use another folder.")
    for name in (*header(""), VERSIONS):
        then.pop(name, None)
    if changes := differences(then, settings):
        raise UsageError(
            f"The run in '{folder}' was started with other settings: {changes}. Use those again "
            f"to go on with it, another folder, or {anew}."
        )


def write_settings(folder: Path, settings: Mapping[str, object]) -> None:
    """Save what a run depends on and the versions it begins with, unless they are saved."""
    if not (folder / SETTINGS).is_file():
        plain = {**header("training-settings"), **settings, VERSIONS: versions()}
        write_json(folder / SETTINGS, plain)


def last_checkpoint(folder: Path, processes: int = 1) -> Path | None:
    """The latest whole checkpoint; those a kill left unfinished are deleted."""
    last = None
    for path in sorted(folder.glob("checkpoint-*"), key=step_of):
        if (path / MARK).is_file() and len(list(path.glob("rng_state*"))) >= processes:
            last = path
        else:
            shutil.rmtree(path, ignore_errors=True)
    return last


def step_of(checkpoint: Path) -> int:
    """The step a checkpoint was saved after."""
    return int(checkpoint.name.split("-")[1])


def goes_on(folder: Path) -> str:
    """What the same training does after an interruption, in words."""
    checkpoint = last_checkpoint(folder)
    if checkpoint is None:
        return (
            "no checkpoint was saved yet, so the same command starts over; --save-minutes and "
            "--save-every save sooner."
        )
    return f"the same command again goes on from step {step_of(checkpoint)} in {folder}."


def drop_checkpoints(folder: Path) -> None:
    """Delete all of them; one that a kill leaves half deleted is not taken for a whole one."""
    for path in folder.glob("checkpoint-*"):
        (path / MARK).unlink(missing_ok=True)
        shutil.rmtree(path, ignore_errors=True)


def clear(folder: Path) -> None:
    """Delete everything a run left in the folder, what says that it is done first."""
    (folder / RESULT).unlink(missing_ok=True)
    drop_checkpoints(folder)
    for name in (CURVE, WEIGHTS, SETTINGS):
        (folder / name).unlink(missing_ok=True)


def sweep(folder: Path) -> None:
    """Delete what a kill left half written."""
    for path in folder.glob(".*partial*"):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def save_weights(model: nn.Module, folder: Path) -> None:
    """Every parameter and saved buffer in one file, whole or not at all."""
    kept = {name: value.detach().contiguous() for name, value in model.named_parameters()}
    saved = model.state_dict().keys()
    kept |= {name: value.clone() for name, value in model.named_buffers() if name in saved}
    with whole(folder / WEIGHTS) as partial:
        save_file(kept, partial)


def load_weights(model: nn.Module, folder: Path) -> None:
    """Put what `save_weights` saved into the model."""
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    weights = read_weights(folder / WEIGHTS)
    if lost := [name for name, _ in model.named_parameters() if name not in weights]:
        raise UsageError(f"{folder / WEIGHTS} lacks weights of the model: {short(lost[0])}.")
    for name, value in weights.items():
        if name not in tensors or tensors[name].shape != value.shape:
            raise UsageError(f"{folder / WEIGHTS} has other weights than the model: {short(name)}.")
        with torch.no_grad():
            tensors[name].copy_(value)


def read_weights(path: Path) -> dict[str, Tensor]:
    """The weights in a file that a run saved."""
    require_file(path, "weights")
    try:
        return load_file(path)
    except OSError as error:
        raise NotFoundError(
            f"Cannot read the weights {path}: {error.strerror or error}."
        ) from error
    except Exception as error:  # safetensors' own, and those of a dtype that torch has not
        raise UsageError(f"{path} is no file of weights: {error}.") from error


class Saver(TrainerCallback):
    """Says when Trainer saves, and marks a checkpoint once all of it is there.

    At the end of an epoch and of the run a checkpoint waits for the epoch's scores, so that a run
    that goes on from it has them. This must be the last callback: others save beside Trainer.
    """

    def __init__(self, every: int | None, minutes: float = 0.0) -> None:
        self.every, self.minutes = every, minutes
        self._step, self._time = 0, time.monotonic()

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Nothing is new since the checkpoint that the run goes on from."""
        self._step, self._time = state.global_step, time.monotonic()

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Save by steps or by time."""
        due = self._due(state)  # evaluated in every step: processes agree on the time
        ends = float(state.epoch).is_integer() or state.global_step >= state.max_steps
        control.should_save = due and not ends

    def on_epoch_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Save after an epoch, or where a step's turn was its last; and at the end of the run."""
        wanted = self.every is None or self._due(state) or state.global_step >= state.max_steps
        control.should_save = wanted and state.global_step > self._step

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Trainer and the other callbacks have saved."""
        self._step, self._time = state.global_step, time.monotonic()
        if state.is_world_process_zero:
            folder = Path(str(args.output_dir)) / f"checkpoint-{state.global_step}"
            share(folder)
            write_json(folder / MARK, {"step": state.global_step})

    def _due(self, state: TrainerState) -> bool:
        if self.every is not None and state.global_step % self.every == 0:
            return True
        if not self.minutes:
            return False
        return first_says(time.monotonic() - self._time >= 60 * self.minutes)
