"""Inputs without labels, as their options say: lines of a file, texts of a task, random tokens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from headcount.base.errors import UnsupportedError, UsageError
from headcount.models.find import unwrap
from headcount.models.probe import MEDIA, probe_inputs, reads_text, takes
from headcount.tasks.audio import SOUNDS, encode_sounds, with_own_texts
from headcount.tasks.calibration import InputOptions
from headcount.tasks.conversations import calibration_texts
from headcount.tasks.encoding import EncodedRows, encode_texts
from headcount.tasks.files import SUFFIXES, read_table
from headcount.tasks.images import encode_images
from headcount.tasks.loading import match, require_readable, room
from headcount.tasks.masking import random_tokens
from headcount.tasks.media import IMAGES, files_in, files_of
from headcount.tasks.rows import rows_of
from headcount.tasks.task import Task, sample

POOL = 20
"""Rows that are tokenized for each input that is sampled, at most: enough for even lengths."""
SHORTEST = 5
"""Random tokens have at least so many in a row."""


def read_inputs(
    model: PreTrainedModel,
    tokenizer: Any,
    input_options: InputOptions,
    task: Task | None = None,
    *,
    decides: bool = False,
) -> tuple[EncodedRows, str]:
    """(rows, their name); where they `decide` which heads go, no scored row is among them."""
    match(model, tokenizer)
    longest = room(model, input_options.max_length)
    if not reads_text(type(unwrap(model))) and (task is None or input_options.random is not None):
        if input_options.rows is not None:
            files = media_files(model, input_options.rows)
            chosen = sample(len(files), input_options.count, input_options.seed)
            rows = media_rows(model, [files[number] for number in chosen], tokenizer)
            return rows, input_options.rows.name
        return noise(model, input_options.count, input_options.seed), "noise"
    if input_options.rows is not None:
        lines = calibration_texts(input_options.rows)
        chosen = sample(len(lines), POOL * input_options.count, input_options.seed)
        texts = [lines[number] for number in chosen]
        return encode_texts(texts, tokenizer, max_length=longest), input_options.rows.name
    if task is None or input_options.random is not None:
        generator = torch.Generator().manual_seed(input_options.seed)
        shortest = min(SHORTEST, longest)
        rows = random_tokens(tokenizer, input_options.count, shortest, longest, generator)
        return rows, "random tokens"
    split = input_options.split
    if split is None and decides and task.parts is not None:
        split = "train"
    most, seed = POOL * input_options.count, input_options.seed
    # nothing is masked: attention is measured as it is in use
    rows = rows_of(
        model,
        task,
        tokenizer,
        split,
        limit=most,
        seed=seed,
        max_length=input_options.max_length,
        masked=False,
    )
    return rows[1], task.name


def media_files(model: PreTrainedModel, path: Path) -> list[Path]:
    """Calibration files of a model of images or sound: those of a folder or a table, or one."""
    known = takes(type(unwrap(model)))
    if not known & set(MEDIA):
        raise UnsupportedError(
            f"{type(unwrap(model)).__name__} reads neither texts nor images nor sound: in Python, "
            "hc.redundancy, hc.recover and hc.prune take batches of its inputs."
        )
    suffixes, what = (IMAGES, "image") if "pixel_values" in known else (SOUNDS, "sound")
    if path.suffix.lower() in SUFFIXES:
        column = "image" if "pixel_values" in known else "audio"
        return files_of(path, read_table(path, [column])[column])
    return files_in(path, suffixes, what) if path.is_dir() else [path]


def media_rows(model: PreTrainedModel, files: Sequence[Path], processor: Any) -> EncodedRows:
    """Files of images or sound as rows; a decoder reads what the model hears in a sound."""
    images = "pixel_values" in takes(type(unwrap(model)))
    if processor is None:
        what = "Images" if images else "Sounds"
        raise UsageError(f"{what} need the model's processor: pass --tokenizer FOLDER.")
    rows = encode_images(files, processor) if images else encode_sounds(files, processor)
    require_readable(model, rows)
    return rows if images else with_own_texts(unwrap(model), rows, processor)


def noise(model: PreTrainedModel, count: int, seed: int) -> EncodedRows:
    """Rows of Gaussian noise in the shape that the model reads."""
    inputs = probe_inputs(unwrap(model), batch=count, seed=seed)
    return EncodedRows({name: list(value.cpu().numpy()) for name, value in inputs.items()})
