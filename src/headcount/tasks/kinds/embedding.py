"""A vector for a text, without labels: what a model is compared with is the full model itself."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedConfig

from headcount.base.errors import UnsupportedError
from headcount.models.batches import ModelBatch
from headcount.models.sentences import sentence_modules
from headcount.tasks.kinds.kind import PredictionTable, TaskKind
from headcount.tasks.metrics import Outcome
from headcount.tasks.rows import ScoredRows
from headcount.tasks.task import Task

NEIGHBOURS = 10
"""How many of the nearest texts are looked at."""
ROUNDING = 1e-6
"""Cosines that differ by less are equal: texts that are there twice are equally near."""
BLOCK = 1024
"""Texts whose cosines to all others are held at once."""


class Embedding(TaskKind):
    """The answer is an embedding of length 1, and its loss the squared distance to another one."""

    name: ClassVar = "embedding"
    head: ClassVar = "base"
    saved_as: ClassVar = ("",)  # a model with any head has embeddings
    metrics: ClassVar = ("fidelity", f"neighbours@{NEIGHBOURS}")
    unit: ClassVar = "squared distance"
    nats: ClassVar = 0.5  # of a normal distribution with variance 1
    logits: ClassVar = False
    unlabelled: ClassVar = True
    compares: ClassVar = True

    def config_changes(self, config: PreTrainedConfig, task: Task) -> dict[str, Any]:
        """Nothing can be trained, and so no head be new."""
        raise UnsupportedError(
            f"The task '{task.name}' has no labels to train on: prune and search take "
            "embedding models as they are, and --recover repairs without training."
        )

    def predict(self, outputs: Any, inputs: dict[str, Any], model: nn.Module) -> Tensor:
        """(row, size) embeddings of length 1, by the model's own modules."""
        hidden, mask = outputs.last_hidden_state, inputs.get("attention_mask")
        if mask is not None and len(mask) != len(hidden):  # several copies of the rows
            mask = mask.repeat(len(hidden) // len(mask), 1)
        return functional.normalize(sentence_modules(model).embed(hidden, mask), dim=-1)

    def require_labels(self, answers: Tensor, labels: Tensor) -> None:
        """A label is an embedding."""
        self.require_as_many(answers.shape, labels, labels.shape == answers.shape)

    def counts(self, labels: Tensor) -> Tensor:
        """(row,) one label each."""
        return torch.ones(len(labels), dtype=torch.bool, device=labels.device)

    def losses(
        self, answers: Tensor, batch: ModelBatch, *, smoothing: float = 0.0, total: bool = False
    ) -> Tensor:
        """(row,) squared distances; there is nothing to smooth."""
        assert batch.labels is not None
        distances = (answers - batch.labels).square().sum(1)
        return distances.sum() if total else distances

    def sample_labels(
        self, answers: Tensor, batch: ModelBatch, generator: torch.Generator
    ) -> Tensor:
        """The own embedding and normal noise."""
        noise = torch.randn(answers.shape, generator=generator, dtype=answers.dtype)
        return answers.detach() + noise.to(answers.device)

    def score(self, kept: np.ndarray, scored: ScoredRows) -> tuple[Outcome, PredictionTable]:
        """(row, 2) the cosine to the full model's embedding, and the share of neighbours kept."""
        assert scored.reference is not None
        cosines = (kept * scored.reference).sum(1).clip(-1, 1)
        shares = neighbours_kept(scored.reference, kept)
        table = {"row": np.arange(len(kept)), "cosine": cosines, "neighbours": shares}
        return Outcome(np.column_stack([cosines, shares]), np.ones(len(kept))), table


def neighbours_kept(before: np.ndarray, after: np.ndarray, count: int = NEIGHBOURS) -> np.ndarray:
    """(row,) the share of a text's nearest texts that are still among as many nearest ones.

    Both are (row, size) embeddings of length 1. Texts that are equally near share the places that
    are left: where all embeddings are the same, neighbours are kept by chance. A text without
    others keeps all of none.

    >>> pairs = np.eye(2)[[0, 1, 0, 1, 1]]
    >>> neighbours_kept(pairs, pairs, count=1).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    >>> neighbours_kept(pairs, np.ones((5, 1)), count=1)[[0, 2]].tolist()
    [0.25, 0.25]
    """
    size, shares = len(before), np.ones(len(before))
    count = min(count, size - 1)
    for start in range(0, size if count > 0 else 0, BLOCK):
        rows = np.arange(start, min(start + BLOCK, size))
        old, new = (_nearness(vectors, rows, count) for vectors in (before, after))
        shares[rows] = np.minimum(old, new).sum(1) / count
    return shares


def _nearness(vectors: np.ndarray, rows: np.ndarray, count: int) -> np.ndarray:
    """(row, text) 1 for the nearest texts of a row; less for those that share the last places."""
    cosines = vectors[rows] @ vectors.T
    cosines[np.arange(len(rows)), rows] = -np.inf  # not its own neighbour
    last = np.partition(cosines, -count, axis=1)[:, -count, None]
    above, equal = cosines > last + ROUNDING, np.abs(cosines - last) <= ROUNDING
    return above + equal * (count - above.sum(1, keepdims=True)) / equal.sum(1, keepdims=True)
