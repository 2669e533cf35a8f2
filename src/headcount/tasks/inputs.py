"""Inputs without labels, as their options say: lines of a file, texts of a task, random tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from headcount.base.errors import UnsupportedError, UsageError
from headcount.models.find import unwrap
from headcount.models.probe import probe_inputs, reads_text, takes
from headcount.tasks.calibration import InputOptions
from headcount.tasks.encoding import EncodedRows, encode_texts
from headcount.tasks.files import read_lines
from headcount.tasks.images import encode_images
from headcount.tasks.loading import match, room
from headcount.tasks.masking import random_tokens
from headcount.tasks.media import IMAGES, files_in
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
            if tokenizer is None:
                raise UsageError("Images need the model's processor: pass --tokenizer FOLDER.")
            files = media_files(model, input_options.rows)
            chosen = sample(len(files), input_options.count, input_options.seed)
            rows = encode_images([files[number] for number in chosen], tokenizer)
            return rows, input_options.rows.name
        return noise(model, input_options.count, input_options.seed), "noise"
    if input_options.rows is not None:
        lines = [line for line in read_lines(input_options.rows) if line.strip()]
        if not lines:
            raise UsageError(f"'{input_options.rows}' has no lines with text.")
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


def media_files(model: PreTrainedModel, folder: Path) -> list[Path]:
    """The files of calibration images, for a model that reads images: a folder, or one file."""
    if "pixel_values" not in takes(type(unwrap(model))):
        raise UnsupportedError(
            f"{type(unwrap(model)).__name__} reads neither texts nor images: in Python, "
            "hc.redundancy, hc.recover and hc.prune take batches of its inputs."
        )
    return files_in(folder, IMAGES, "image") if folder.is_dir() else [folder]


def noise(model: PreTrainedModel, count: int, seed: int) -> EncodedRows:
    """Rows of Gaussian noise in the shape that the model reads."""
    inputs = probe_inputs(unwrap(model), batch=count, seed=seed)
    return EncodedRows({name: list(value.cpu().numpy()) for name, value in inputs.items()})
