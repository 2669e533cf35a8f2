"""The folder of a run: who may write there, whether it is the same run, and where it goes on."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainingArguments

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
        with tempfile.TemporaryDirectory(prefix="headcount-") as path:
            yield Path(path)
        return
    folder = expanded(out)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"'{folder}' is a file, not a folder to train into.")
    # of several processes that train together the first holds it for all
    with locked(folder) if is_first() else nullcontext():
        yield folder


def take_up(
    folder: Path,
    settings: dict[str, object],
    arguments: TrainingArguments,
    *,
    overwrite: bool,
    anew: str,
) -> Path | None:
    """Check what is in the folder against the settings, and find where to go on."""
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
    given: dict[str, object], task: Task, rows: EncodedRows, options: TrainOptions, *, scored: bool
) -> dict[str, object]:
    """What a run depends on, by name; two runs with the same settings end in the same files.

    `given` is the identity of the model as it came, before dropout was set on it.
    """
    settings = {**given, "task": task.name, "metric": task.metric, "data": rows_fingerprint(rows)}
    if scored and task.evaluation != "train":
        settings[task.evaluation] = examples_fingerprint(task.load(task.evaluation))
    return {**settings, **options.identity()}


def save_model(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """The finished model among the run's files; each file appears whole."""
    partial = folder / ".partial"  # inside, so that the next start finds what a kill left
    try:
        model.save_pretrained(partial)
        tokenizer.save_pretrained(partial)
        share(partial)
        for item in sorted(partial.iterdir()):
            os.replace(item, folder / item.name)
        partial.rmdir()
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
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
