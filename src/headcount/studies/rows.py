"""A task's rows as a model takes them, for what is measured before a cut."""

from __future__ import annotations

from typing import Any

import numpy as np
from transformers import PreTrainedModel

from headcount.tasks import Task
from headcount.tasks.encoding import Encoded, encode
from headcount.tasks.task import Limit
from headcount.training.loading import class_order, match, room


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
    that has none lends its evaluation split.
    """
    split = split or ("train" if "train" in task.splits else task.evaluation)
    examples = task.load(split, limit=limit, seed=seed)
    match(model, tokenizer)
    length = room(model, max_length)
    rows = encode(task, examples, tokenizer, max_length=length, seed=seed)
    if task.kind != "classification" or examples.labels is None:
        return rows
    labels = class_order(model, task, examples.labels)[examples.labels]
    return Encoded(rows.columns, np.asarray(labels), rows.padding, rows.left)
