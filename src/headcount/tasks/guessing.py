"""What a model has to beat: the score of guessing.

    found = against_guessing("accuracy_f1", outcome)
    found.guess, found.difference, found.better

Of classes it is the best of all answers that are the same throughout; of what goes with the labels
(Matthews, rank and linear correlation) it is 0. Language models and translations have none here.
F1 of one answer throughout can be high (0.81 on MRPC), so that a model that knows much is hardly
above it: classes that go with the labels are no guesses either, whatever the metric says.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headcount.tasks.metrics import Difference, Outcome, difference, get_metric, score

ONE_ANSWER = ("accuracy", "f1", "accuracy_f1")
CORRELATION = ("matthews", "spearman", "pearson")


@dataclass(frozen=True, kw_only=True)
class Guessing:
    """What guessing scores, and how much more the model does."""

    guess: float
    difference: Difference
    better: bool
    """Whether the model is better, whatever rows are drawn; what is undefined is not."""


def against_guessing(
    metric: str, said: Outcome, *, bootstrap: int = 1000, seed: int = 0
) -> Guessing | None:
    """A model beside guessing on the same rows; None where guessing has no score."""
    if metric in CORRELATION:
        own = score(metric, said, bootstrap=bootstrap, seed=seed)
        ends = {"low": own.low, "high": own.high, "no_interval": own.no_interval}
        found = Difference(metric=metric, value=own.value, **ends)
        return Guessing(guess=0.0, difference=found, better=own.low > 0)
    if metric not in ONE_ANSWER:
        return None
    known, labels = get_metric(metric), np.asarray(said.labels)
    scores = {
        answer: known.score(np.full_like(labels, answer), labels) for answer in np.unique(labels)
    }
    best = max(scores, key=lambda answer: np.nan_to_num(scores[answer], nan=-np.inf))
    same = Outcome(np.full_like(labels, best), said.labels)
    found = difference(metric, same, said, bootstrap=bootstrap, seed=seed)
    goes_along = score("matthews", said, bootstrap=bootstrap, seed=seed).low > 0
    return Guessing(guess=scores[best], difference=found, better=found.low > 0 or goes_along)
