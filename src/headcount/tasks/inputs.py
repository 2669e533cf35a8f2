"""Inputs without labels, as their options say: lines of a file, texts of a task, random tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from headcount.base.errors import UsageError
from headcount.tasks.encoding import EncodedRows, encode_texts
from headcount.tasks.files import read_lines
from headcount.tasks.loading import match, room
from headcount.tasks.masking import random_tokens
from headcount.tasks.reading import InputOptions
from headcount.tasks.sampling import rows_of
from headcount.tasks.task import Task, sample

POOL = 20
"""Rows that are tokenized for each input that is looked at, at most: enough to be even over."""
SHORTEST = 5
"""Random tokens have at least so many in a row."""


def read_inputs(
    model: PreTrainedModel,
    tokenizer: Any,
    reading: InputOptions,
    task: Task | None = None,
    *,
    decides: bool = False,
) -> tuple[EncodedRows, str]:
    """(rows, what they are); where they `decide` which heads go, no row that is scored is taken."""
    match(model, tokenizer)
    longest = room(model, reading.max_length)
    if reading.inputs is not None:
        return _lines(reading.inputs, tokenizer, reading, longest), reading.inputs.name
    if task is None or reading.random is not None:
        generator = torch.Generator().manual_seed(reading.seed)
        shortest = min(SHORTEST, longest)
        rows = random_tokens(tokenizer, reading.count, shortest, longest, generator)
        return rows, "random tokens"
    split = reading.split
    if split is None and decides and task.parts is not None:
        split = "train"
    how = {"limit": POOL * reading.count, "seed": reading.seed, "max_length": longest}
    # nothing is masked: attention is looked at as it is in use
    return rows_of(task, tokenizer, split, **how, masked=False)[1], task.name


def _lines(path: Path, tokenizer: Any, reading: InputOptions, longest: int) -> EncodedRows:
    """The lines of a text file that say something."""
    lines = [line for line in read_lines(path) if line.strip()]
    if not lines:
        raise UsageError(f"'{path}' has no lines with text.")
    lines = [lines[place] for place in sample(len(lines), POOL * reading.count, reading.seed)]
    return encode_texts(lines, tokenizer, max_length=longest)
