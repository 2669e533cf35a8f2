"""A text written by an encoder-decoder, from another one: translation, summaries, any pairs."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.base.errors import UnsupportedError, UsageError
from headcount.models.batches import ModelBatch, model_inputs
from headcount.tasks.encoding import EncodedRows, RowOptions, tokenized
from headcount.tasks.kinds.kind import PredictionTable, TaskKind, draw_classes, where_labelled
from headcount.tasks.metrics import Outcome
from headcount.tasks.rows import ScoredRows
from headcount.tasks.task import Examples


class TextToText(TaskKind):
    """The decoder learns every word of the target, and is scored on what it writes."""

    name: ClassVar = "text-to-text"
    head: ClassVar = "seq2seq-lm"
    saved_as: ClassVar = ("ForConditionalGeneration", "MTModel", "EncoderDecoderModel")
    generation: ClassVar = ("input_ids", "attention_mask")
    writes: ClassVar = True

    def fits(self, model: nn.Module, answers: Tensor, labels: Tensor) -> bool:
        """Words of an encoder-decoder."""
        writes = getattr(getattr(model, "config", None), "is_encoder_decoder", False)
        return answers.ndim > 2 and bool(writes)

    def encode(
        self, examples: Examples, processor: PreTrainedTokenizerBase, options: RowOptions
    ) -> EncodedRows:
        """Labels are the target's tokens."""
        source, target = examples.texts
        wanted = processor(
            text_target=[str(text) for text in target], truncation=True, max_length=options.length
        )
        return tokenized(processor, source, length=options.length, labels=wanted["input_ids"])

    def given(
        self, model: PreTrainedModel, rows: EncodedRows, answers: Tensor
    ) -> tuple[EncodedRows, tuple[str, ...]]:
        """Rows of tokens have no text to score against."""
        raise UsageError(f"What is written is scored against texts: pass a {self.name} task.")

    def inputs(self, model: nn.Module, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """The decoder reads the labels, one behind."""
        shift = getattr(model, "prepare_decoder_input_ids_from_labels", None)
        if shift is None:
            raise UnsupportedError(f"{type(model).__name__} cannot be trained to write texts.")
        return model_inputs(model, batch | {"decoder_input_ids": shift(labels=batch["labels"])})

    def sample_labels(
        self, answers: Tensor, batch: ModelBatch, generator: torch.Generator
    ) -> Tensor:
        """A word for every token of the decoder."""
        return where_labelled(draw_classes(answers, generator), batch, "decoder")

    def score(self, kept: list[str], scored: ScoredRows) -> tuple[Outcome, PredictionTable]:
        """Sentences beside sentences."""
        source, target = (list(column) for column in scored.examples.texts)
        wanted = [str(text) for text in target]
        table = {"row": np.arange(len(kept)), "source": source, "label": wanted, "prediction": kept}
        return Outcome(kept, wanted), table


class Translation(TextToText):
    """The same; what is written is another language."""

    name: ClassVar = "translation"
