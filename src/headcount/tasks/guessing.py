"""What a model has to beat: the score of guessing.

    guessing = against_guessing("accuracy_f1", outcome)
    guessing.guess, guessing.difference, guessing.better

Of classes it is the best score of always predicting the same class; of correlations with the labels
(Matthews, Spearman, Pearson) it is 0. Language models and translations have none here. F1 of one
constant class can be high (0.81 on MRPC), so that a good model is hardly above it: predictions that
correlate with the labels are no guesses either, whatever the metric says.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headcount.tasks.metrics import Difference, Outcome, difference, get_metric, score

ONE_ANSWER = ("accuracy", "f1", "accuracy_f1")
CORRELATION = ("matthews", "spearman", "pearson")


@dataclass(frozen=True, kw_only=True)
class Guessing:
    """What guessing scores, and how much more the model scores."""

    guess: float
    difference: Difference
    better: bool
    """Whether the interval is above guessing; what is undefined is not."""


def against_guessing(
    metric: str, outcome: Outcome, *, bootstrap: int = 1000, seed: int = 0
) -> Guessing | None:
    """A model beside guessing on the same rows; None where guessing has no score."""
    if metric in CORRELATION:
        scored = score(metric, outcome, bootstrap=bootstrap, seed=seed)
        return Guessing(guess=0.0, difference=Difference(**vars(scored)), better=scored.low > 0)
    if metric not in ONE_ANSWER:
        return None
    known, labels = get_metric(metric), np.asarray(outcome.labels)
    scores = {
        answer: known.score(np.full_like(labels, answer), labels) for answer in np.unique(labels)
    }
    best = max(scores, key=lambda answer: np.nan_to_num(scores[answer], nan=-np.inf))
    same = Outcome(np.full_like(labels, best), outcome.labels)
    gain = difference(metric, same, outcome, bootstrap=bootstrap, seed=seed)
    correlated = score("matthews", outcome, bootstrap=bootstrap, seed=seed).low > 0
    return Guessing(guess=scores[best], difference=gain, better=gain.low > 0 or correlated)
