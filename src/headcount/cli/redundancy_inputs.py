"""What `headcount redundancy` measures on: rows of tokens from a task, a text file, or chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headcount.errors import UsageError

if TYPE_CHECKING:
    from headcount.tasks.encoding import Encoded

POOL = 20
"""Rows that are tokenized for each input that is measured, at most: enough to be even over."""


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """How texts become rows of tokens."""

    tokenizer: Any
    longest: int
    """Tokens of the longest row."""
    count: int
    """Inputs that will be measured."""
    seed: int


def task_rows(task: str, source: Mapping[str, Any], split: str | None, tokens: Tokens) -> Encoded:
    """The texts of a task, or a sample of them where there are very many."""
    from headcount.tasks import open_task
    from headcount.tasks.sampling import rows_of

    opened = open_task(task, **source)
    if split is None and opened.parts is not None:
        split = "train"  # what is measured may decide which heads go
    how = {"limit": POOL * tokens.count, "seed": tokens.seed, "max_length": tokens.longest}
    # nothing is masked: attention is looked at as it is in use
    return rows_of(opened, tokens.tokenizer, split, **how, masked=False)[1]


def text_rows(path: Path, tokens: Tokens) -> Encoded:
    """The lines of a text file that say something."""
    from headcount.tasks.encoding import encode_texts
    from headcount.tasks.files import read_lines
    from headcount.tasks.task import sample

    lines = [line for line in read_lines(path) if line.strip()]
    if not lines:
        raise UsageError(f"'{path}' has no lines with text.")
    lines = [lines[place] for place in sample(len(lines), POOL * tokens.count, tokens.seed)]
    return encode_texts(lines, tokens.tokenizer, max_length=tokens.longest)


def random_rows(tokens: Tokens) -> Encoded:
    """Random tokens; lengths are drawn uniformly (A7)."""
    import torch

    from headcount.tasks.masking import random_tokens

    generator = torch.Generator().manual_seed(tokens.seed)
    shortest = min(5, tokens.longest)
    return random_tokens(tokens.tokenizer, tokens.count, shortest, tokens.longest, generator)
