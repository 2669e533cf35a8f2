"""Pairs of texts scored by the cosine of their embeddings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

import headcount as hc
from headcount.tasks import Examples, Task
from headcount.training.evaluate import evaluate
from models.sentence_folders import tiny_encoder
from tasks.kinds.test_embedding import load, vectors


def pairs(split: str) -> Examples:
    first, second = load(split).texts[0], load(f"other {split}").texts[0]
    return Examples((first, second), np.random.default_rng(0).integers(0, 6, 64).astype(float))


TASK = Task(
    name="pairs", kind="similarity", texts=("first", "second"), metrics=("spearman", "pearson"),
    loader=pairs,
)  # fmt: skip


def test_it_is_the_rank_correlation_of_the_cosines(tokenizer: Any) -> None:
    model, examples = tiny_encoder(tokenizer), pairs("dev")
    sides = [vectors(model, tokenizer, texts) for texts in examples.texts]
    cosines = (sides[0] * sides[1]).sum(1)
    found = evaluate(model, TASK, tokenizer=tokenizer)
    assert found.score == pytest.approx(spearmanr(cosines, examples.labels)[0], abs=1e-6)
    np.testing.assert_allclose(found.predictions["prediction"], cosines, atol=1e-5)
    assert found.n == 64


def test_both_texts_of_a_pair_are_measured_on(tokenizer: Any) -> None:
    model = tiny_encoder(tokenizer)
    found = hc.importance(model, TASK, tokenizer=tokenizer, split="train", samples=8)
    assert found.n == 8
    assert min(found.values) > 0
    small = hc.prune(
        model, "surgeon", 0.5, task=TASK, tokenizer=tokenizer, repair=(hc.Recover(),),
        calibration=hc.Calibration(samples=16), baseline=0,
    )  # fmt: skip
    assert len(small.mask) == 4
