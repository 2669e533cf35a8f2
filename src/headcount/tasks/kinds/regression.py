"""A number for a text or a pair of texts."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel

from headcount.base.errors import UsageError
from headcount.models.batches import ModelBatch
from headcount.tasks.encoding import EncodedRows
from headcount.tasks.kinds.kind import Losses, PredictionTable, TaskKind
from headcount.tasks.metrics import Outcome
from headcount.tasks.rows import ScoredRows
from headcount.tasks.task import Task


class Regression(TaskKind):
    """The model answers with one number, and learns by its squared error."""

    name: ClassVar = "regression"
    head: ClassVar = "sequence-classification"
    saved_as: ClassVar = ("ForSequenceClassification",)
    metrics: ClassVar = ("spearman",)
    unit: ClassVar = "squared error"
    nats: ClassVar = 0.5  # of a normal distribution with variance 1
    logits: ClassVar = False

    def fits(self, model: nn.Module, answers: Tensor, labels: Tensor) -> bool:
        """One number a row, or labels that are no whole numbers."""
        return answers.ndim == 2 and (answers.shape[1] == 1 or labels.is_floating_point())

    def config_changes(self, config: PreTrainedConfig, task: Task) -> dict[str, Any]:
        """One number."""
        return {"num_labels": 1}

    def given(
        self, model: PreTrainedModel, rows: EncodedRows, answers: Tensor
    ) -> tuple[EncodedRows, tuple[str, ...]]:
        """Numbers, for a model that answers with one."""
        labelled = super().given(model, rows, answers)
        if answers.shape[1] > 1:
            raise UsageError(f"Labels are numbers of the model's {answers.shape[1]} classes.")
        return labelled

    def require_labels(self, answers: Tensor, labels: Tensor) -> None:
        """As many as there are answers, of any type."""
        self.require_as_many(answers.shape, labels, labels.numel() == answers.numel())

    def losses(
        self, answers: Tensor, batch: ModelBatch, *, smoothing: float = 0.0, total: bool = False
    ) -> Tensor:
        """Squared errors; there is nothing to smooth."""
        labels = batch.labels
        assert labels is not None
        if total:
            difference = answers.squeeze(-1).float() - labels.float()
            return (difference.square() * self.counts(labels)).sum()
        wide = answers.to(torch.promote_types(answers.dtype, torch.float32))
        difference = wide.reshape(len(labels), -1) - labels.reshape(len(labels), -1)
        return difference.square() * self.counts(labels).reshape(len(labels), -1)

    def sample_labels(
        self, answers: Tensor, batch: ModelBatch, generator: torch.Generator
    ) -> Tensor:
        """The answer and normal noise."""
        noise = torch.randn(answers.shape, generator=generator).to(answers.device)
        return (answers.detach() + noise).squeeze(-1)

    def score(self, kept: np.ndarray, scored: ScoredRows) -> tuple[Outcome, PredictionTable]:
        """Numbers beside numbers."""
        labels = scored.examples.labels
        assert labels is not None
        table = {"row": np.arange(len(labels)), "label": labels, "prediction": kept[:, 0]}
        return Outcome(kept[:, 0], labels), table

    def kept_losses(self, table: PredictionTable, scored: ScoredRows) -> Losses:
        """Squared errors."""
        labels = scored.examples.labels
        assert labels is not None
        return (table["prediction"] - labels) ** 2, np.ones(len(labels))
