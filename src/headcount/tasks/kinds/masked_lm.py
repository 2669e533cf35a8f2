"""Tokens that were hidden, from those around them."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from headcount.models.batches import ModelBatch
from headcount.tasks.encoding import EncodedRows, RowItem, RowOptions
from headcount.tasks.kinds.causal_lm import is_causal
from headcount.tasks.kinds.kind import TokenKind, draw_classes, entropy_sum, where_labelled
from headcount.tasks.masking import mask_tokens
from headcount.tasks.task import Examples


class MaskedLM(TokenKind):
    """The model predicts every token; only those that were hidden have labels."""

    name: ClassVar = "masked-lm"
    head: ClassVar = "masked-lm"
    saved_as: ClassVar = ("ForMaskedLM", "ForPreTraining")

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
        self, row: RowItem, processor: PreTrainedTokenizerBase, generator: np.random.Generator
    ) -> RowItem:
        """Other tokens are hidden in every epoch."""
        hidden, labels = mask_tokens(row["input_ids"], processor, generator)
        return {**row, "input_ids": hidden, "labels": labels}

    def losses(
        self, answers: Tensor, batch: ModelBatch, *, smoothing: float = 0.0, total: bool = False
    ) -> Tensor:
        """Cross-entropy of the hidden tokens, which are few."""
        if not total:
            return super().losses(answers, batch)
        assert batch.labels is not None
        return entropy_sum(answers, batch.labels, smoothing, few=True)

    def sample_labels(
        self, answers: Tensor, batch: ModelBatch, generator: torch.Generator
    ) -> Tensor:
        """A token drawn for every one that has a label, or for all."""
        return where_labelled(draw_classes(answers, generator), batch)
