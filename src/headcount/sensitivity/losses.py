"""The loss of every example of a batch, whatever the model predicts."""

from __future__ import annotations

from torch import Tensor

from headcount.models.batches import ModelBatch
from headcount.tasks.kinds.kind import TaskKind


def example_losses(kind: TaskKind, answers: Tensor, batch: ModelBatch) -> tuple[Tensor, Tensor]:
    """(example,) the mean loss over its labels; (example,) which examples have any.

    >>> import torch
    >>> from headcount.tasks.kinds import task_kind
    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 2.0]])
    >>> batch = ModelBatch({}, torch.tensor([0, -100]))
    >>> example_losses(task_kind("classification"), logits, batch)
    (tensor([0.1269, 0.0000]), tensor([ True, False]))
    """
    labels = batch.labels
    assert labels is not None
    kind.require_labels(answers, labels)
    rows = len(answers)
    sums = by_example(kind.losses(answers, batch).reshape(rows, -1).sum(1), batch)
    number = by_example(kind.counts(labels).reshape(rows, -1).sum(1), batch)
    return sums / number.clamp_min(1), number > 0


def by_example(values: Tensor, batch: ModelBatch) -> Tensor:
    """(row, …) values as sums over the rows of each example, in the order of their numbers."""
    if batch.examples is None:
        return values
    numbers, places = batch.examples.unique(return_inverse=True)
    return values.new_zeros(len(numbers), *values.shape[1:]).index_add(0, places, values)
