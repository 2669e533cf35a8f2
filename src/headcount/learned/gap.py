"""What is measured while gates are trained: the train–test gap, and the score over the run.

The gap (AutoAttention, §3.2) is the score with training gates minus the score with test gates.
Neither changes the run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.base.errors import UsageError
from headcount.tasks import Task
from headcount.training.evaluate import RowScorer
from headcount.training.options import TrainOptions
from headcount.training.runs import own_randomness
from headcount.training.scoring import Scoring

if TYPE_CHECKING:
    from headcount.learned.keeper import Keeper

Measurement = dict[str, float | str]
"""Numbers by name, as they stand in a trace or a result."""


def gap_measure(
    model: PreTrainedModel,
    task: Task,
    tokenizer: PreTrainedTokenizerBase,
    options: TrainOptions,
    *,
    draws: int,
) -> Callable[[Keeper], Measurement] | None:
    """A measurement for the keeper, or None where the task has no rows but those of training."""
    if task.evaluation == "train":
        return None

    scoring = Scoring(max_length=options.max_length, bootstrap=0)
    scorer = RowScorer(model, task, tokenizer, scoring)

    def measure(keeper: Keeper) -> Measurement:
        # noise of its own: measuring must not change the run
        random = torch.Generator().manual_seed(keeper.seed + 1)
        many = draws if keeper.kind.noisy else 1
        training = []
        for _ in range(many):
            keeper.show(keeper.draw(1.0, random).detach())
            training.append(scorer.score().score)
        mask = keeper.chosen()
        keeper.show(torch.tensor([float(head in mask) for head in keeper.layout]))
        test = scorer.score().score
        return {
            "train": float(np.mean(training)),
            "test": test,
            "gap": float(np.mean(training)) - test,
            "draws": many,
            "split": task.evaluation,
            "metric": task.metric,
        }

    return measure


def score_measure(
    model: PreTrainedModel,
    task: Task,
    tokenizer: PreTrainedTokenizerBase,
    options: TrainOptions,
    *,
    rows: int,
) -> Callable[[], Measurement]:
    """A measurement of the model as it is, on one seeded sample of the evaluation split."""
    if task.evaluation == "train":
        raise UsageError(
            f"Task '{task.name}' has no rows but those of training, so there is no score over the "
            "run: leave out score_points."
        )
    scoring = Scoring(limit=rows, max_length=options.max_length, seed=options.seed, bootstrap=0)
    scorer = RowScorer(model, task, tokenizer, scoring)

    def measure() -> Measurement:
        with own_randomness():
            evaluation = scorer.score()
        return {"score": evaluation.score, "n": evaluation.n}

    return measure
