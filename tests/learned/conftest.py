"""The tiny BERT and its task, and a model in which a known set of heads is needed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from headcount.heads import Head, Mask
from headcount.models.find import layout, sites_of
from headcount.tasks import Examples, Task
from headcount.training.evaluate import evaluate
from headcount.training.options import TrainOptions
from headcount.training.scoring import Scoring
from training.conftest import model, pets, task, tiny, tokenizer

__all__ = ["model", "task", "tokenizer"]

NEEDED = [("encoder", 0, 1), ("encoder", 0, 3), ("encoder", 1, 2), ("encoder", 2, 0)]
STILL = TrainOptions(
    steps=60, batch_size=32, learning_rate=1e-7, attention_dropout=0.0, hidden_dropout=0.0
)
"""Weights that hardly move, and no dropout: only the gates learn."""
SHORT = TrainOptions(steps=12, batch_size=16, learning_rate=1e-3, log_every=1)


@pytest.fixture(scope="session")
def planted(tokenizer: Any) -> tuple[Any, Task, Mask]:
    """(model, task, the heads it needs): all others write nothing, and its own answers are the
    labels, so the loss is zero exactly where all needed heads are open."""
    made: Any = tiny(tokenizer, num_labels=1)
    mask = Mask(layout(made), frozenset(Head(*head) for head in NEEDED))
    with torch.no_grad():
        for site in sites_of(made):
            weight = made.get_submodule(site.out).weight  # (output, head * head_dim)
            kept = set(mask.indices(site.stack, site.layer))
            for head in range(site.heads):
                columns = slice(head * site.head_dim, (head + 1) * site.head_dim)
                weight[:, columns] *= 3.0 if head in kept else 0.0
        made.classifier.weight *= 4.0
    words = pets("regression", rows=96)
    answers = {}
    for split in ("train", "dev"):
        found = evaluate(
            made, words, tokenizer=tokenizer, scoring=Scoring(split=split, bootstrap=0)
        )
        answers[split] = np.asarray(found.predictions["prediction"], dtype=float)

    def load(split: str) -> Examples:
        return Examples(words.load(split).texts, answers[split])

    return made, replace(words, name="planted", loader=load), mask
