"""Which texts of a corpus answer a query: the ten whose embeddings are nearest."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from headcount.tasks.encoding import EncodedRows, RowOptions, tokenized
from headcount.tasks.kinds.embedding import BLOCK, Embedding
from headcount.tasks.kinds.kind import PredictionTable
from headcount.tasks.metrics import Outcome
from headcount.tasks.rows import ScoredRows
from headcount.tasks.task import Examples

DEPTH = 10
"""How many of the nearest texts count."""


class Retrieval(Embedding):
    """An example is a query; the corpus, which all are compared with, is embedded beside them."""

    name: ClassVar = "retrieval"
    metrics: ClassVar = (f"ndcg@{DEPTH}", f"recall@{DEPTH}")
    compares: ClassVar = False
    rows_of_tables: ClassVar = False

    def encode(self, examples: Examples, processor: Any, options: RowOptions) -> EncodedRows:
        """The queries, and what they are compared with."""
        rows = tokenized(processor, examples.texts[0], length=options.length)
        return replace(rows, corpus=tokenized(processor, examples.corpus, length=options.length))

    def score(self, kept: np.ndarray, scored: ScoredRows) -> tuple[Outcome, PredictionTable]:
        """(query, 2) nDCG and recall; `kept` has the corpus below the queries."""
        queries, corpus = kept[: len(scored.rows)], kept[len(scored.rows) :]
        judged = [json.loads(str(text)) for text in scored.examples.texts[1]]
        results = np.array(
            [
                ranked_scores(cosines, {int(text): grade for text, grade in grades.items()})
                for start in range(0, len(queries), BLOCK)
                for cosines, grades in zip(
                    queries[start : start + BLOCK] @ corpus.T,
                    judged[start : start + BLOCK],
                    strict=True,
                )
            ]
        )
        columns = {"row": np.arange(len(queries)), "ndcg": results[:, 0], "recall": results[:, 1]}
        return Outcome(results, np.ones(len(queries))), columns


def ranked_scores(
    cosines: np.ndarray, grades: dict[int, int | None], depth: int = DEPTH
) -> tuple[float, float]:
    """(nDCG, recall) of the nearest texts, as trec_eval counts them.

    A text is relevant by its grade if that is above 0; those of equal cosine are in the order of
    the corpus, and one with the grade None is the query itself, which is no answer.

    >>> ranked_scores(np.array([0.9, 0.5, 0.7]), {1: 1, 2: 2}, depth=2)
    (0.4796249331362629, 0.5)
    """
    cosines = cosines.copy()
    cosines[[text for text, grade in grades.items() if grade is None]] = -np.inf
    first = np.argsort(-cosines, kind="stable")[:depth]
    gains = np.array([max(grades.get(int(text)) or 0, 0) for text in first], dtype=float)
    ideal = np.sort([max(grade or 0, 0) for grade in grades.values()])[::-1]
    discounts = 1 / np.log2(np.arange(2, depth + 2))
    best = float(ideal[:depth] @ discounts[: len(ideal[:depth])])
    relevant = int((ideal > 0).sum())
    if not relevant:
        return 0.0, 0.0
    gained = float(gains @ discounts[: len(gains)])
    return gained / best, int((gains > 0).sum()) / relevant
