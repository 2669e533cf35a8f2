"""Tokens that were hidden, from those around them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from headcount.models.batches import ModelBatch
from headcount.tasks.encoding import EncodedRows, RowOptions
from headcount.tasks.kinds import entropy
from headcount.tasks.kinds.causal_lm import is_causal
from headcount.tasks.kinds.kind import Losses, TaskKind
from headcount.tasks.masking import mask_tokens
from headcount.tasks.metrics import Outcome
from headcount.tasks.rows import ScoredRows
from headcount.tasks.task import Examples


class MaskedLM(TaskKind):
    """The model answers with a word for every token, and is asked for some."""

    name: ClassVar = "masked-lm"
    head: ClassVar = "masked-lm"
    saved_as: ClassVar = ("ForMaskedLM", "ForPreTraining")
    metrics: ClassVar = ("perplexity",)
    asks_tokens: ClassVar = True

    def fits(self, model: nn.Module, answers: Tensor, labels: Tensor) -> bool:
        """Words for every token, of a model that is no decoder."""
        writes = getattr(getattr(model, "config", None), "is_encoder_decoder", False)
        return answers.ndim > 2 and not (
            writes or is_causal(model) or "CTC" in type(model).__name__
        )

    def encode(
        self, examples: Examples, processor: PreTrainedTokenizerBase, options: RowOptions
    ) -> EncodedRows:
        """Tokens are hidden here, always the same for a seed, unless training does."""
        rows = super().encode(examples, processor, options)
        if not options.masked:
            return rows
        drawn = [
            mask_tokens(ids, processor, np.random.default_rng((options.seed, row)))
            for row, ids in enumerate(rows.columns["input_ids"])
        ]
        columns = rows.columns | {"input_ids": [ids for ids, _ in drawn]}
        return replace(rows, columns=columns, labels=[wanted for _, wanted in drawn])

    def draw(
        self, row: dict[str, Any], processor: Any, generator: np.random.Generator
    ) -> dict[str, Any]:
        """Other tokens are hidden in every epoch."""
        hidden, labels = mask_tokens(row["input_ids"], processor, generator)
        return {**row, "input_ids": hidden, "labels": labels}

    def losses(
        self, answers: Tensor, batch: ModelBatch, *, smoothing: float = 0.0, total: bool = False
    ) -> Tensor:
        """Cross-entropy of the words that are asked for, which are few."""
        if not total:
            return super().losses(answers, batch)
        assert batch.labels is not None
        return entropy.entropy_sum(answers, batch.labels, smoothing, few=True)

    def sample_labels(
        self, answers: Tensor, batch: ModelBatch, generator: torch.Generator
    ) -> Tensor:
        """A word for every token that is asked for, or for all."""
        return entropy.where_asked(entropy.draw_classes(answers, generator), batch)

    def read(self, answers: Tensor, batch: ModelBatch) -> Tensor:
        """Correct tokens, -log p, and tokens."""
        assert batch.labels is not None
        return entropy.token_scores(answers, batch.labels)

    def score(self, kept: np.ndarray, scored: ScoredRows) -> tuple[Outcome, dict[str, Any]]:
        """Counts over tokens."""
        return entropy.token_outcome(kept)

    def kept_losses(self, table: Mapping[str, Any], scored: ScoredRows) -> Losses:
        """-log p, by token."""
        return entropy.token_losses(table)
