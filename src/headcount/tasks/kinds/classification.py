"""One of several classes for a text or a pair of texts."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedConfig, PreTrainedModel

from headcount.base.errors import UsageError
from headcount.tasks.encoding import EncodedRows
from headcount.tasks.kinds.kind import Losses, PredictionTable, TaskKind
from headcount.tasks.loading import class_names, class_order, has_classes
from headcount.tasks.metrics import Outcome
from headcount.tasks.rows import ScoredRows
from headcount.tasks.task import Task


class Classification(TaskKind):
    """The model has a class for each of the task's, by name or by number."""

    name: ClassVar = "classification"
    head: ClassVar = "sequence-classification"
    saved_as: ClassVar = ("ForSequenceClassification",)
    metrics: ClassVar = ("accuracy",)

    def fits(self, model: nn.Module, answers: Tensor, labels: Tensor) -> bool:
        """Several numbers a row, and labels that count classes."""
        return answers.ndim == 2 and answers.shape[1] > 1 and not labels.is_floating_point()

    def config_changes(self, config: PreTrainedConfig, task: Task) -> dict[str, Any]:
        """The task's classes, where the model does not have them."""
        if has_classes(config, task):
            return {}
        return {
            "num_labels": len(task.labels),
            "id2label": dict(enumerate(task.labels)),
            "label2id": {label: number for number, label in enumerate(task.labels)},
        }

    def class_order(
        self, model: PreTrainedModel, task: Task, labels: np.ndarray | None
    ) -> np.ndarray | None:
        """As the user said, by name, or by number."""
        return class_order(model, task, labels)

    def given(
        self, model: PreTrainedModel, rows: EncodedRows, answers: Tensor
    ) -> tuple[EncodedRows, tuple[str, ...]]:
        """Labels are numbers of the model's classes."""
        rows, _ = super().given(model, rows, answers)
        names = tuple(class_names(model.config))
        labels = np.asarray(rows.labels)
        unknown = sorted({int(label) for label in labels[(labels < 0) | (labels >= len(names))]})
        if unknown:
            raise UsageError(
                f"The rows have the label {unknown[0]}, and the model's {len(names)} classes are "
                f"numbered from 0 to {len(names) - 1}."
            )
        return rows, names

    def score(self, kept: np.ndarray, scored: ScoredRows) -> tuple[Outcome, PredictionTable]:
        """A class of the model that the task does not have is one more class, and always wrong."""
        labels, order = scored.examples.labels, scored.order
        assert labels is not None
        assert order is not None
        back = np.full(kept.shape[1], len(order))
        back[order[order >= 0]] = np.flatnonzero(order >= 0)
        predictions = back[kept.argmax(1)]
        names = np.array([*scored.task.labels, "(other)"])
        return Outcome(predictions, labels), {
            "row": np.arange(len(labels)),
            "label": names[labels],
            "prediction": names[predictions],
            "logits": kept,
        }

    def kept_losses(self, table: PredictionTable, scored: ScoredRows) -> Losses | None:
        """Cross-entropy, in double precision."""
        labels, order = scored.examples.labels, scored.order
        assert labels is not None
        assert order is not None
        logits = torch.from_numpy(np.asarray(table["logits"], dtype=np.float64))
        wanted = torch.from_numpy(order[labels])
        losses = functional.cross_entropy(logits, wanted, reduction="none")
        return losses.numpy(), np.ones(len(labels))
