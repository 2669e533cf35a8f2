"""A task's rows as a model takes them, for what is measured before a cut."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import Tensor
from transformers import PreTrainedModel

from headcount.base.digest import digest
from headcount.base.errors import UsageError
from headcount.tasks import Task
from headcount.tasks.encoding import EncodedRows, encode, rows_fingerprint
from headcount.tasks.kinds import task_kind
from headcount.tasks.loading import match, room
from headcount.tasks.sampling import rows_of
from headcount.tasks.task import Examples, Limit


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoredRows:
    """The rows of one split of a task as numbers, for models with the same classes."""

    task: Task
    split: str
    examples: Examples
    rows: EncodedRows
    order: np.ndarray | None = None
    """(task class,) the model's number for it; None without classes."""
    fingerprint: str
    """What was asked, in 16 digits: texts and labels, or in language modelling the very tokens."""

    def __len__(self) -> int:
        return self.rows.count

    def take(self, numbers: np.ndarray) -> ScoredRows:
        """These examples, in this order."""
        rows, examples = self.rows.take(numbers), self.examples
        if len(examples) == len(self):  # packed lines are blocks, and belong to no row
            examples = examples.take(numbers)
        name = asked_fingerprint(self.task, examples, rows)
        return replace(self, examples=examples, rows=rows, fingerprint=name)


def asked_fingerprint(task: Task, examples: Examples, rows: EncodedRows) -> str:
    """A short name for what is asked of a model."""
    if task_kind(task.kind).asks_tokens:
        return rows_fingerprint(rows)
    labels = None if examples.labels is None else examples.labels.tolist()
    content = json.dumps([[list(column) for column in examples.texts], labels])
    return digest(content)


def in_model_numbers(
    model: PreTrainedModel, task: Task, examples: Examples, rows: EncodedRows
) -> EncodedRows:
    """Rows whose labels are classes, as the model numbers them."""
    if not isinstance(rows.labels, np.ndarray):
        return rows
    order = task_kind(task.kind).class_order(model, task, examples.labels)
    return rows if order is None else replace(rows, labels=order[rows.labels])


def split_to_look_at(task: Task) -> str:
    """Where methods, recovery and training take their rows from."""
    return "train" if "train" in task.splits else task.evaluation


def labelled_rows(
    model: PreTrainedModel,
    task: Task,
    tokenizer: Any,
    *,
    split: str | None = None,
    limit: Limit = None,
    seed: int = 0,
    max_length: int = 128,
) -> EncodedRows:
    """A seeded sample of rows with labels in the model's own numbers.

    They come from the train split, so that what is decided on them is scored on others; a task
    without other rows than those that are scored is refused, unless the split is named.
    """
    if split is None and ("train" not in task.splits or task.evaluation == "train"):
        raise UsageError(
            f"Task '{task.name}' has no rows to decide on but those that are scored: pass --train "
            "FILE as well."
        )
    split = split or "train"
    match(model, tokenizer)
    length = room(model, max_length)
    examples, rows = rows_of(task, tokenizer, split, limit=limit, seed=seed, max_length=length)
    return in_model_numbers(model, task, examples, rows)


def batches_to_look_at(
    model: PreTrainedModel, task: Task, tokenizer: Any, count: int = 64
) -> list[dict[str, Tensor]]:
    """A few rows of the task's evaluation split as the model takes them, of several lengths."""
    match(model, tokenizer)
    examples = task.load(task.evaluation, limit=count)
    rows = encode(task, examples, tokenizer, max_length=room(model, 128))
    return [batch for _, batch in rows.batches(1024)]
