"""The folder of a run: who may write there, whether it is the same run, and where it goes on."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel, TrainingArguments

from headcount.base.errors import UsageError
from headcount.base.files import cannot_write, expanded, locked, share
from headcount.tasks import Task
from headcount.tasks.encoding import EncodedRows, examples_fingerprint, rows_fingerprint
from headcount.training import checkpoints
from headcount.training.options import TrainOptions
from headcount.training.processes import is_first


@contextmanager
def run_folder(out: str | Path | None) -> Generator[Path]:
    """The run's folder, held for this run alone; or one that is gone afterwards."""
    if out is None:
        with tempfile.TemporaryDirectory(prefix="headcount-") as made:
            yield Path(made)
        return
    folder = expanded(out)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"'{folder}' is a file, not a folder to train into.")
    # of several processes that train together the first holds it for all
    with locked(folder) if is_first() else nullcontext():
        yield folder


def take_up(
    folder: Path,
    settings: dict[str, Any],
    arguments: TrainingArguments,
    *,
    overwrite: bool = False,
    anew: str = "delete it to start anew",
) -> Path | None:
    """Check what is in the folder against what is asked, and find where to go on."""
    first = arguments.process_index == 0
    if overwrite and first:
        checkpoints.clear(folder)
    checkpoints.require_same_settings(folder, settings, anew)
    if first:
        checkpoints.sweep(folder)
        checkpoints.write_settings(folder, settings)
        if (folder / checkpoints.RESULT).is_file():
            checkpoints.drop_checkpoints(folder)  # a kill came between the two
    return checkpoints.last_checkpoint(folder, arguments.world_size)


def settings_of(
    given: dict[str, Any], task: Task, rows: EncodedRows, options: TrainOptions, *, scored: bool
) -> dict[str, Any]:
    """What a run depends on, by name; two runs with the same settings end in the same files.

    `given` is the identity of the model as it came, before dropout was set on it.
    """
    found = {**given, "task": task.name, "metric": task.metric, "data": rows_fingerprint(rows)}
    if scored and task.evaluation != "train":
        found[task.evaluation] = examples_fingerprint(task.load(task.evaluation))
    return {**found, **options.identity()}


def save_model(model: PreTrainedModel, tokenizer: Any, folder: Path) -> None:
    """The finished model among the run's files; each file appears whole."""
    made = folder / ".partial"  # inside, so that the next start finds what a kill left
    try:
        model.save_pretrained(made)
        tokenizer.save_pretrained(made)
        share(made)
        for item in sorted(made.iterdir()):
            os.replace(item, folder / item.name)
        made.rmdir()
    except OSError as error:
        shutil.rmtree(made, ignore_errors=True)
        raise cannot_write(folder, error) from error


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
