"""A task's rows as a model takes them, for what is measured before a cut."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor
from transformers import PreTrainedModel

from headcount.errors import UsageError
from headcount.tasks import Task
from headcount.tasks.encoding import Encoded, encode
from headcount.tasks.loading import class_order, match, room
from headcount.tasks.sampling import rows_of
from headcount.tasks.task import Limit


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
) -> Encoded:
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
    if task.kind != "classification" or examples.labels is None:
        return rows
    labels = class_order(model, task, examples.labels)[examples.labels]
    return Encoded(rows.columns, np.asarray(labels), rows.padding, rows.left)


def batches_to_look_at(
    model: PreTrainedModel, task: Task, tokenizer: Any, count: int = 64
) -> list[dict[str, Tensor]]:
    """A few rows of the task's evaluation split as the model takes them, of several lengths."""
    match(model, tokenizer)
    examples = task.load(task.evaluation, limit=count)
    rows = encode(task, examples, tokenizer, max_length=room(model, 128))
    return [batch for _, batch in rows.batches(1024)]
