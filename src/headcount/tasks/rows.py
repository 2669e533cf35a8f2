"""The rows of a task as a model takes them: sampled, encoded, with labels in its numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.base.digest import digest
from headcount.base.errors import UsageError
from headcount.tasks import Task
from headcount.tasks.encoding import IGNORED, EncodedRows, encode, rows_fingerprint
from headcount.tasks.kinds import task_kind
from headcount.tasks.loading import match, require_readable, room
from headcount.tasks.task import Examples, Limit, sample

POOL = 64
"""Blocks of a long text that are made for each one that is sampled."""
LONGEST = 2**20
"""Tokens of a row that is never truncated, in a model without an end of its positions."""
LETTERS = 4
"""Letters of a token, about; only how much of a long text is read depends on it."""


def rows_of(
    model: PreTrainedModel,
    task: Task,
    tokenizer: PreTrainedTokenizerBase,
    split: str | None = None,
    *,
    limit: Limit = None,
    seed: int = 0,
    max_length: int = 128,
    masked: bool = True,
) -> tuple[Examples, EncodedRows]:
    """The rows of a split and their tokens, truncated to what fits into the model.

    `limit` counts what the model is given.

    In language modelling that is not what the file has: packed lines become blocks, and a line
    without a token to ask for is no row.
    """
    max_length = row_length(model, task, max_length)

    def encoded(examples: Examples) -> EncodedRows:
        return encode(
            task,
            examples,
            tokenizer,
            max_length=max_length,
            seed=seed,
            masked=masked,
            decoder=_is_beside_an_encoder(model),
        )

    if task.packed and limit is not None:
        return _blocks(task.load(split), encoded, limit, seed, max_length)
    examples = task.load(split, limit=limit, seed=seed)
    rows = encoded(examples)
    require_readable(model, rows)
    if not task_kind(task.kind).asks_tokens or rows.labels is None:
        return examples, rows
    kept = _with_labels(rows)
    if len(kept) < rows.count and limit is not None:
        # others replace those without a token to predict
        whole = task.load(split)
        every = encoded(whole)
        useful = _with_labels(every)
        kept = useful[sample(len(useful), rows.count, seed)] if len(useful) else useful
        examples, rows = whole, every
    if not len(kept):
        raise UsageError("No row has a token to predict.")
    return (examples, rows) if len(kept) == rows.count else (examples.take(kept), rows.take(kept))


def _with_labels(rows: EncodedRows) -> np.ndarray:
    """Examples with a token to predict: a masked-LM row of special tokens only has none."""
    labels = rows.labels if isinstance(rows.labels, list) else []
    useful = [row for row, tokens in enumerate(labels) if any(label >= 0 for label in tokens)]
    numbers = np.array(useful, dtype=np.int64)
    return numbers if rows.examples is None else np.unique(rows.examples[numbers])


def _blocks(
    examples: Examples,
    encoded: Callable[[Examples], EncodedRows],
    limit: int | float,
    seed: int,
    max_length: int,
) -> tuple[Examples, EncodedRows]:
    """A sample of the blocks; of a text that is far longer than needed a stretch is read."""
    part = examples
    if not isinstance(limit, float):
        part = _stretch(examples, POOL * LETTERS * max(1, limit) * max_length, seed)
    rows = encoded(part)
    if not isinstance(limit, float) and len(rows) < limit and len(part) < len(examples):
        rows = encoded(examples)
    return examples, rows.take(sample(len(rows), limit, seed))


def _stretch(examples: Examples, letters: int, seed: int) -> Examples:
    """Neighbouring lines with at least so many letters, from a random start on."""
    ends = np.cumsum([len(str(line)) + 1 for line in examples.texts[0]])
    if ends[-1] <= letters:
        return examples
    start = np.random.default_rng((seed, 1)).integers(ends[-1] - letters)
    first, last = np.searchsorted(ends, [start, start + letters], side="right")
    return examples.take(np.arange(first, last + 1))


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoredRows:
    """The rows of one split of a task as numbers, for models with the same classes."""

    task: Task
    split: str
    examples: Examples
    rows: EncodedRows
    order: np.ndarray | None = None
    """(task class,) the model's number for it; None without classes."""
    reference: np.ndarray | None = None
    """(row, …) the answers that others are compared with, where the kind compares."""
    fingerprint: str
    """A digest of texts and labels, or in language modelling of the very tokens."""
    length: int | None = None
    """Tokens that a row has at most: the rest of a longer text is not read. None: all is read."""

    def __len__(self) -> int:
        return self.rows.count

    def take(self, numbers: np.ndarray) -> ScoredRows:
        """These examples, in this order."""
        rows, examples = self.rows.take(numbers), self.examples
        if len(examples) == len(self):  # packed lines are blocks, and belong to no row
            examples = examples.take(numbers)
        name = scored_fingerprint(self.task, examples, rows)
        reference = None if self.reference is None else self.reference[numbers]
        return replace(self, examples=examples, rows=rows, reference=reference, fingerprint=name)


def scored_fingerprint(task: Task, examples: Examples, rows: EncodedRows) -> str:
    """A digest of what a model is scored on."""
    if task_kind(task.kind).asks_tokens:
        return rows_fingerprint(rows)
    labels = None if examples.labels is None else examples.labels.tolist()
    columns = [*examples.texts, *([examples.corpus] if examples.corpus else [])]
    content = json.dumps([[list(column) for column in columns], labels])
    return digest(content)


def in_model_numbers(
    model: PreTrainedModel, task: Task, examples: Examples, rows: EncodedRows
) -> EncodedRows:
    """Rows whose labels are classes, as the model numbers them."""
    order = task_kind(task.kind).class_order(model, task, examples.labels)
    if order is None or rows.labels is None:
        return rows
    if isinstance(rows.labels, np.ndarray):
        return replace(rows, labels=order[rows.labels])
    number = {IGNORED: IGNORED, **dict(enumerate(order.tolist()))}
    return replace(rows, labels=[[number[label] for label in row] for row in rows.labels])


def _is_beside_an_encoder(model: PreTrainedModel) -> bool:
    return bool(getattr(model.config, "is_encoder_decoder", False))


def row_length(model: PreTrainedModel, task: Task, max_length: int) -> int:
    """Tokens of a row of the task: its window, which must fit into the model, or what fits."""
    if task_kind(task.kind).whole:
        return room(model, LONGEST)
    length = room(model, task.window or max_length)
    if task.window is not None and length < task.window:
        raise UsageError(
            f"A window of {task.window} tokens does not fit into the model, which has {length} "
            "positions: pass a smaller --window."
        )
    return length


def calibration_split(task: Task) -> str:
    """The split that methods, recovery and training take their rows from."""
    return "train" if "train" in task.splits else task.evaluation


def labelled_rows(
    model: PreTrainedModel,
    task: Task,
    tokenizer: PreTrainedTokenizerBase,
    *,
    split: str | None = None,
    limit: Limit = None,
    seed: int = 0,
    max_length: int = 128,
) -> EncodedRows:
    """A seeded sample of rows with labels in the model's own numbers.

    They come from the train split, so that what is decided on them is scored on others; a task
    whose only rows are those that are scored is refused, unless the split is named.
    """
    if split is None and ("train" not in task.splits or task.evaluation == "train"):
        raise UsageError(
            f"Task '{task.name}' has no rows for calibration besides those that are scored: pass "
            "--train FILE as well."
        )
    split = split or "train"
    match(model, tokenizer)
    examples, rows = rows_of(
        model, task, tokenizer, split, limit=limit, seed=seed, max_length=max_length
    )
    return in_model_numbers(model, task, examples, rows)


def rows_of_tokens(
    model: PreTrainedModel,
    task: Task,
    tokenizer: PreTrainedTokenizerBase,
    tokens: int,
    *,
    seed: int = 0,
    max_length: int = 128,
) -> EncodedRows:
    """As `labelled_rows`, a sample of examples with this many tokens, the last of which may be more
    than are needed; all of the split where it has fewer."""
    count = -(-tokens // row_length(model, task, max_length))
    while True:
        rows = labelled_rows(model, task, tokenizer, limit=count, seed=seed, max_length=max_length)
        has = int(rows.sizes.sum())
        if has >= tokens or rows.count < count:
            return first_tokens(rows, tokens, np.random.default_rng(seed).permutation(rows.count))
        count = max(count + 1, -(-count * tokens * 11 // (10 * has)))


def first_tokens(rows: EncodedRows, tokens: int, order: np.ndarray | None = None) -> EncodedRows:
    """As many examples, in this order or their own, as reach this many tokens."""
    order = np.arange(rows.count) if order is None else order
    enough = int(np.searchsorted(np.cumsum(rows.sizes[order]), tokens)) + 1
    return rows.take(np.sort(order[:enough]))


def sample_batches(
    model: PreTrainedModel, task: Task, tokenizer: PreTrainedTokenizerBase, count: int = 64
) -> list[dict[str, Tensor]]:
    """A few rows of the task's evaluation split as the model takes them, of several lengths."""
    match(model, tokenizer)
    examples = task.load(task.evaluation, limit=count)
    rows = encode(
        task,
        examples,
        tokenizer,
        max_length=row_length(model, task, 128),
        decoder=_is_beside_an_encoder(model),
    )
    return [batch for _, batch in rows.batches(1024)]
