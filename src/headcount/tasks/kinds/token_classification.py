"""A tag for every word of a text, such as the entity it belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.base.errors import UsageError
from headcount.models.batches import ModelBatch
from headcount.tasks.encoding import IGNORED, EncodedRows, RowOptions, padded_rows, with_offsets
from headcount.tasks.entities import OUTSIDE
from headcount.tasks.kinds.classification import Classification
from headcount.tasks.kinds.kind import (
    Losses,
    PredictionTable,
    TaskKind,
    draw_classes,
    where_labelled,
)
from headcount.tasks.loading import class_names
from headcount.tasks.metrics import Outcome
from headcount.tasks.rows import ScoredRows
from headcount.tasks.task import Examples

WORDS = "words"
"""The column with the number of the word that begins at a token, from 1."""


class TokenClassification(Classification):
    """The first piece of a word has its label; the others have none."""

    name: ClassVar = "token-classification"
    head: ClassVar = "token-classification"
    saved_as: ClassVar = ("ForTokenClassification",)
    metrics: ClassVar = ("entity_f1", "token_accuracy")

    def fits(self, model: nn.Module, answers: Tensor, labels: Tensor) -> bool:
        """Classes for every token, of a model that is called so."""
        return answers.ndim == 3 and "ForTokenClassification" in type(model).__name__

    def encode(
        self, examples: Examples, processor: PreTrainedTokenizerBase, options: RowOptions
    ) -> EncodedRows:
        """Words and tags are joined by spaces; what is cut off is scored as outside."""
        texts, tags = ([str(text) for text in column] for column in examples.texts)
        columns, offsets = with_offsets(processor, texts, length=options.length)
        number = {name: index for index, name in enumerate(options.classes)}
        labels, words = [], []
        for text, names, spans in zip(texts, tags, offsets, strict=True):
            classes = [IGNORED, *(number[name] for name in names.split(" "))]
            words.append(_first_pieces(text, spans))
            labels.append([classes[word] for word in words[-1]])
        return padded_rows(columns | {WORDS: words}, labels, processor)

    def given(
        self, model: PreTrainedModel, rows: EncodedRows, answers: Tensor
    ) -> tuple[EncodedRows, tuple[str, ...]]:
        """Labels are numbers of the model's classes, one for every token, -100 for none."""
        rows, _ = TaskKind.given(self, model, rows, answers)
        names = tuple(class_names(model.config))
        labels = np.array([label for row in rows.labels or () for label in row if label != IGNORED])
        if unknown := sorted({*labels[(labels < 0) | (labels >= len(names))].tolist()}):
            raise UsageError(
                f"The rows have the label {unknown[0]}, and the model's {len(names)} classes are "
                f"numbered from 0 to {len(names) - 1}."
            )
        return rows, names

    def sample_labels(
        self, answers: Tensor, batch: ModelBatch, generator: torch.Generator
    ) -> Tensor:
        """A class drawn for every token that has a label, or for all."""
        return where_labelled(draw_classes(answers, generator), batch)

    def read(self, answers: Tensor, batch: ModelBatch) -> Tensor:
        """(row, token) one more than the predicted class; 0 where no label counts."""
        assert batch.labels is not None
        numbers = answers.argmax(-1).double() + 1
        numbers = numbers.masked_fill(~answers.isfinite().all(-1), torch.nan)
        return numbers.masked_fill(batch.labels == IGNORED, 0.0)

    def score(self, kept: np.ndarray, scored: ScoredRows) -> tuple[Outcome, PredictionTable]:
        """Sentences of tags beside sentences of tags."""
        order, labels = scored.order, scored.rows.labels
        assert order is not None
        assert isinstance(labels, list)
        known = scored.task.labels
        names = {int(number): known[index] for index, number in enumerate(order) if number >= 0}
        predicted = [
            [names.get(int(number) - 1, "(other)") for number in row[row > 0]] for row in kept
        ]
        right = [[known[label] for label in row if label != IGNORED] for row in labels]
        texts = [""] * len(right)
        if WORDS in scored.rows.columns:
            texts, right = [str(text) for text in scored.examples.texts[0]], []
            words = scored.rows.columns[WORDS]
            for row, tags in enumerate(scored.examples.texts[1]):
                right.append(str(tags).split(" "))
                by_word = dict(zip(filter(None, words[row]), predicted[row], strict=True))
                predicted[row] = [by_word.get(word + 1, OUTSIDE) for word in range(len(right[-1]))]
        predictions, wanted = ([" ".join(tags) for tags in side] for side in (predicted, right))
        table = {"row": np.arange(len(wanted)), "source": texts}
        return Outcome(predictions, wanted), table | {"label": wanted, "prediction": predictions}

    def kept_losses(self, table: PredictionTable, scored: ScoredRows) -> Losses | None:
        """Classes alone have none."""
        return None


def _first_pieces(text: str, spans: Sequence[tuple[int, int]]) -> list[int]:
    """(token,) the number of the word that begins with it, from 1; 0 for other tokens."""
    starts = np.cumsum([0, *(len(word) + 1 for word in text.split(" "))])
    pieces, done = [], 0
    for start, end in spans:
        word = int(np.searchsorted(starts, end - 1, side="right"))
        # special tokens are empty, and a space may be a token of its own
        first = end > start and word > done and text[end - 1] != " "
        done = word if first else done
        pieces.append(word if first else 0)
    return pieces
