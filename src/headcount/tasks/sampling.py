"""The rows of a split as tokens, or exactly as many of them as were asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

from headcount.base.errors import UsageError
from headcount.tasks.encoding import EncodedRows, encode
from headcount.tasks.kinds import task_kind
from headcount.tasks.task import Examples, Limit, Task, sample

POOL = 64
"""Blocks of a long text that are made for each one that is sampled."""
LETTERS = 4
"""Letters of a token, about; only how much of a long text is read depends on it."""


def rows_of(
    task: Task,
    tokenizer: Any,
    split: str | None = None,
    *,
    limit: Limit = None,
    seed: int = 0,
    max_length: int = 128,
    masked: bool = True,
) -> tuple[Examples, EncodedRows]:
    """The rows of a split and their tokens; `limit` counts what the model is given.

    In language modelling that is not what the file has: packed lines become blocks, and a line
    without a token to ask for is no row.
    """
    how = {"max_length": max_length, "seed": seed, "masked": masked}
    if task.packed and limit is not None:
        return _blocks(task, tokenizer, task.load(split), limit, **how)
    examples = task.load(split, limit=limit, seed=seed)
    rows = encode(task, examples, tokenizer, **how)
    if not task_kind(task.kind).asks_tokens or rows.labels is None:
        return examples, rows
    kept = _asked(rows)
    if len(kept) < len(rows) and limit is not None:
        # others take the place of those in which nothing is asked
        whole = task.load(split)
        every = encode(task, whole, tokenizer, **how)
        useful = _asked(every)
        kept = useful[sample(len(useful), len(rows), seed)] if len(useful) else useful
        examples, rows = whole, every
    if not len(kept):
        raise UsageError("No row has a token to predict.")
    return (examples, rows) if len(kept) == len(rows) else (examples.take(kept), rows.take(kept))


def _asked(rows: EncodedRows) -> np.ndarray:
    """Rows in which something is asked: a masked-LM row of special tokens only has nothing."""
    labels = rows.labels if isinstance(rows.labels, list) else []
    asked = [row for row, own in enumerate(labels) if any(label >= 0 for label in own)]
    return np.array(asked, dtype=np.int64)


def _blocks(
    task: Task, tokenizer: Any, examples: Examples, limit: int | float, **how: Any
) -> tuple[Examples, EncodedRows]:
    """A sample of the blocks; of a text that is far longer than needed a stretch is read."""
    part = examples
    if not isinstance(limit, float):
        letters = POOL * LETTERS * max(1, limit) * how["max_length"]
        part = _stretch(examples, letters, how["seed"])
    rows = encode(task, part, tokenizer, **how)
    if not isinstance(limit, float) and len(rows) < limit and len(part) < len(examples):
        rows = encode(task, examples, tokenizer, **how)
    return examples, rows.take(sample(len(rows), limit, how["seed"]))


def _stretch(examples: Examples, letters: int, seed: int) -> Examples:
    """Neighbouring lines with at least so many letters, from a drawn place on."""
    ends = np.cumsum([len(str(line)) + 1 for line in examples.texts[0]])
    if ends[-1] <= letters:
        return examples
    start = np.random.default_rng((seed, 1)).integers(ends[-1] - letters)
    first, last = np.searchsorted(ends, [start, start + letters], side="right")
    return examples.take(np.arange(first, last + 1))
