from __future__ import annotations

import numpy as np
import pytest

from headcount.tasks.guessing import CORRELATION, ONE_ANSWER, against_guessing
from headcount.tasks.metrics import METRICS, Outcome, get_metric

LABELS = np.array([1, 1, 1, 0] * 25)


@pytest.mark.parametrize(
    ("metric", "guess"),
    [("accuracy", 0.75), ("f1", 6 / 7), ("accuracy_f1", (0.75 + 6 / 7) / 2), ("matthews", 0.0)],
)
def test_who_says_the_same_throughout_guesses(metric, guess):
    same = against_guessing(metric, Outcome(np.ones_like(LABELS), LABELS))
    assert same is not None
    assert same.guess == pytest.approx(guess)
    assert not same.better
    right = against_guessing(metric, Outcome(LABELS, LABELS))
    assert right is not None
    assert right.better
    assert right.difference.value == pytest.approx(1 - guess)


def test_a_model_that_is_only_lucky_is_not_better():
    said = np.ones_like(LABELS)
    said[3] = 0
    found = against_guessing("accuracy", Outcome(said, LABELS))
    assert found is not None
    assert found.difference.value == pytest.approx(0.01)
    assert not found.better


def test_a_model_that_knows_much_is_no_guess_where_the_metric_hardly_shows_it():
    said = LABELS.copy()
    said[:40] = 1 - said[:40]
    said[40:60] = 1
    found = against_guessing("f1", Outcome(said, LABELS))
    assert found is not None
    assert found.difference.value < 0
    assert not found.better
    said = LABELS.copy()
    said[[0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60]] = 0
    said[[3, 7, 11]] = 1
    found = against_guessing("f1", Outcome(said, LABELS))
    assert found is not None
    assert found.difference.low < 0
    assert found.better


@pytest.mark.parametrize("metric", ["spearman", "pearson"])
def test_numbers_that_have_nothing_to_do_with_the_labels(metric):
    rng = np.random.default_rng(0)
    labels = rng.normal(size=200)
    for said, better in ((rng.normal(size=200), False), (labels + rng.normal(size=200), True)):
        found = against_guessing(metric, Outcome(said, labels))
        assert found is not None
        assert found.guess == 0
        assert found.better is better
        assert found.difference.value == get_metric(metric).score(said, labels)


def test_where_guessing_has_no_score():
    tokens = Outcome(np.array([[1.0, 2.0]] * 9), np.array([3] * 9))
    assert {*ONE_ANSWER, *CORRELATION} < set(METRICS)
    assert against_guessing("perplexity", tokens) is None
    assert against_guessing("bleu", Outcome(["a cat"] * 9, ["a dog"] * 9)) is None
