"""Inputs without labels, as their options say: lines of a file, texts of a task, random tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from headcount.base.errors import UsageError
from headcount.tasks.encoding import EncodedRows, encode_texts
from headcount.tasks.files import read_lines
from headcount.tasks.input_options import InputOptions
from headcount.tasks.loading import match, room
from headcount.tasks.masking import random_tokens
from headcount.tasks.sampling import rows_of
from headcount.tasks.task import Task, sample

POOL = 20
"""Rows that are tokenized for each input that is looked at, at most: enough to be even over."""
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
    """(rows, what they are); where they `decide` which heads go, no row that is scored is taken."""
    match(model, tokenizer)
    longest = room(model, input_options.max_length)
    if input_options.rows is not None:
        return _lines(
            input_options.rows, tokenizer, input_options, longest
        ), input_options.rows.name
    if task is None or input_options.random is not None:
        generator = torch.Generator().manual_seed(input_options.seed)
        shortest = min(SHORTEST, longest)
        rows = random_tokens(tokenizer, input_options.count, shortest, longest, generator)
        return rows, "random tokens"
    split = input_options.split
    if split is None and decides and task.parts is not None:
        split = "train"
    how = {"limit": POOL * input_options.count, "seed": input_options.seed, "max_length": longest}
    # nothing is masked: attention is looked at as it is in use
    return rows_of(task, tokenizer, split, **how, masked=False)[1], task.name


def _lines(path: Path, tokenizer: Any, input_options: InputOptions, longest: int) -> EncodedRows:
    """The lines of a text file that say something."""
    lines = [line for line in read_lines(path) if line.strip()]
    if not lines:
        raise UsageError(f"'{path}' has no lines with text.")
    lines = [
        lines[place] for place in sample(len(lines), POOL * input_options.count, input_options.seed)
    ]
    return encode_texts(lines, tokenizer, max_length=longest)
