"""How alike two texts are: the cosine of their embeddings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from headcount.tasks.encoding import EncodedRows, RowOptions, tokenized
from headcount.tasks.kinds.embedding import Embedding
from headcount.tasks.kinds.kind import PredictionTable
from headcount.tasks.metrics import Outcome
from headcount.tasks.rows import ScoredRows
from headcount.tasks.task import Examples


class Similarity(Embedding):
    """An example is two rows, one for each text; its label is only scored against."""

    name: ClassVar = "similarity"
    metrics: ClassVar = ("spearman", "pearson")
    compares: ClassVar = False

    def encode(self, examples: Examples, processor: Any, options: RowOptions) -> EncodedRows:
        """Both texts of an example, one after the other, each alone."""
        texts = [text for pair in zip(*examples.texts, strict=True) for text in pair]
        rows = tokenized(processor, texts, length=options.length)
        return replace(rows, examples=np.arange(len(texts)) // 2)

    def score(self, kept: np.ndarray, scored: ScoredRows) -> tuple[Outcome, PredictionTable]:
        """Cosines beside numbers."""
        labels = scored.examples.labels
        assert labels is not None
        cosines = (kept[::2] * kept[1::2]).sum(1)
        table = {"row": np.arange(len(labels)), "label": labels, "prediction": cosines}
        return Outcome(cosines, labels), table
