"""Made-up predictions and labels for every metric."""

from __future__ import annotations

from typing import Any

import numpy as np

HYPOTHESES = ["the cat sat on the mat today", "a dog runs in the park", "no", "they sing a song"]


REFERENCES = ["the cat sat on a mat today .", "the dog runs in a park now", "yes", "they sang"]


TAGS = ["O B-per I-per O", "O O O B-loc", "B-per O B-loc I-loc", "B-org I-org O B-per"]
COLUMNS = (
    "answer_f1",
    "exact_match",
    "acc",
    "acc_norm",
    "fidelity",
    "neighbours@10",
    "ndcg@10",
    "recall@10",
)
"""Means over columns of numbers."""


def outcome_for(name: str, size: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    if name in ("spearman", "pearson"):
        labels = rng.integers(0, 6, size).astype(float)
        return labels + rng.normal(size=size).round(1), labels
    if name in ("recall@1", "perplexity", "bits_per_byte"):
        tokens = rng.integers(1, 9, size)
        columns = [rng.integers(0, tokens + 1), rng.random(size) * tokens]
        if name == "bits_per_byte":
            columns.append(tokens * rng.integers(1, 5, size))
        return np.column_stack(columns), tokens
    if name in COLUMNS:
        return rng.random((size, 2)).round(2), np.ones(size)
    if name in ("bleu", "chrf", "rouge_l", "wer", "cer"):
        picks = rng.integers(0, 4, size)
        return [HYPOTHESES[i] for i in picks], [REFERENCES[i] for i in picks]
    if name in ("entity_f1", "token_accuracy"):
        picks, others = rng.integers(0, 4, (2, size))
        wrong = np.where(rng.random(size) < 0.7, picks, others)
        return [TAGS[i] for i in wrong], [TAGS[i] for i in picks]
    classes = 3 if name == "matthews" else 2
    labels = rng.integers(0, classes, size)
    return np.where(rng.random(size) < 0.7, labels, rng.integers(0, classes, size)), labels
