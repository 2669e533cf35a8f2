"""Against a plain loop: rows drawn one by one, metrics computed by scikit-learn and scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score

from headcount.base.errors import UsageError
from headcount.tasks.metrics import Outcome, difference
from headcount.tasks.within import rows_needed, within

ROWS = 60


def answers(wrong: float, seed: int, labels: np.ndarray) -> Outcome:
    flipped = np.random.default_rng(seed).random(len(labels)) < wrong
    return Outcome(np.where(flipped, 1 - labels, labels), labels)


@pytest.fixture
def labels() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 2, ROWS)


ORACLES = {"accuracy": accuracy_score, "f1": f1_score}


@pytest.mark.parametrize("metric", ORACLES)
@pytest.mark.parametrize("relative", [False, True])
def test_the_chance_is_that_of_a_plain_loop(metric, relative, labels) -> None:
    """Rows drawn with Dirichlet weights, and with them a row that goes wrong."""
    before, after = answers(0.1, 1, labels), answers(0.15, 2, labels)
    bound, draws = 0.08, 4000
    found = within(metric, before, [after], bound, relative=relative, bootstrap=draws, seed=7)
    rng, kept = np.random.default_rng(5), []
    score = ORACLES[metric]
    right = np.append(labels, [0, 1])
    sides = [np.append(before.predictions, [0, 1]), np.append(after.predictions, [1, 0])]
    for _ in range(400):
        weights = rng.gamma(np.append(np.ones(ROWS), [0.5, 0.5]))
        first, last = (score(right, side, sample_weight=weights) for side in sides)
        kept.append(first - last <= (bound * first if relative else bound) + 1e-9)
    assert found.probability == pytest.approx(np.mean(kept), abs=0.07)
    assert 0 < found.probability < 1
    whole = [score(labels, each.predictions) for each in (before, after)]
    assert found.within_bound == (whole[0] - whole[1] <= (bound * whole[0] if relative else bound))
    assert found.difference == difference(metric, before, after, bootstrap=draws, seed=7)


def test_the_interval_and_the_chance_are_of_one_model(labels) -> None:
    """At the lower end of the interval 97.5 % of the draws lose less."""
    before, after = answers(0.1, 1, labels), answers(0.15, 2, labels)
    lost = difference("accuracy", before, after)
    found = within("accuracy", before, [after], -lost.low)
    assert found.probability == pytest.approx(0.975, abs=0.002)


def test_of_perplexity_the_loss_is_a_rise() -> None:
    tokens = np.full(80, 10.0)
    nll = np.random.default_rng(0).random(80) * 30
    before = Outcome(np.column_stack([np.zeros(80), nll]), tokens)
    worse = Outcome(np.column_stack([np.zeros(80), nll * 1.2]), tokens)
    assert within("perplexity", before, [worse], 0.01, relative=True).probability == 0
    assert within("perplexity", worse, [before], 0.01, relative=True).probability == 1
    rise = np.exp(nll.sum() * 1.2 / 800) / np.exp(nll.sum() / 800) - 1
    for bound, holds in ((rise * 0.99, False), (rise * 1.01, True)):
        assert within("perplexity", before, [worse], bound, relative=True).within_bound is holds


@pytest.mark.parametrize(("rows", "probability"), [(8, 0.08), (60, 0.45), (250, 0.92)])
def test_that_no_row_changed_is_no_certainty(rows: int, probability: float) -> None:
    """1 − (1 − bound)^n: of 8 rows without a change it was "over 99 %"."""
    labels = np.arange(rows) % 2
    one = Outcome(labels, labels)
    found = within("accuracy", one, [one], 0.01)
    assert (found.within_bound, found.difference.value) == (True, 0.0)
    assert found.probability == pytest.approx(probability, abs=0.03)


def test_no_rows_show_that_nothing_at_all_is_lost(labels) -> None:
    one = answers(0.2, 1, labels)
    found = within("accuracy", one, [one], 0.0)
    assert (found.probability, found.within_bound) == (0.0, True)


def test_where_rows_are_too_few_there_is_no_chance() -> None:
    values = np.arange(8.0)
    found = within("spearman", Outcome(values, values), [Outcome(values**2, values)], 0.5)
    assert math.isnan(found.probability)
    assert "it takes 60 rows" in str(found.difference)


def test_several_models_are_drawn_as_rows_are(labels) -> None:
    """The mean of their scores, and an interval that is wider than that of one of them."""
    before = answers(0.1, 1, labels)
    models = [answers(wrong, 10 + place, labels) for place, wrong in enumerate((0.1, 0.2, 0.4))]
    found = within("accuracy", before, models, 0.1, bootstrap=4000, seed=3)
    each = [(model.predictions == labels).mean() for model in models]
    assert found.difference.value == pytest.approx(
        np.mean(each) - (before.predictions == labels).mean()
    )
    alone = within("accuracy", before, models[1:2], 0.1, bootstrap=4000, seed=3)
    wide, narrow = (each.difference.high - each.difference.low for each in (found, alone))
    assert narrow < wide < 3 * narrow


def test_without_draws_there_is_no_chance(labels) -> None:
    found = within("accuracy", answers(0.1, 1, labels), [answers(0.2, 2, labels)], 0.5, bootstrap=0)
    assert math.isnan(found.probability)
    assert found.within_bound


def test_other_rows_are_refused(labels) -> None:
    with pytest.raises(UsageError, match="the same rows"):
        within("accuracy", answers(0, 1, labels), [answers(0, 1, 1 - labels)], 0.1)


@pytest.mark.parametrize("metric", ["accuracy", "f1", "matthews"])
def test_with_the_rows_that_are_needed_the_chance_is_reached(metric: str) -> None:
    """A model that changes nothing reaches the confidence with them, and not with a third."""

    def rows(count: int) -> Outcome:
        labels = np.arange(count) % 2
        return Outcome(np.where(np.arange(count) % 7 == 0, 1 - labels, labels), labels)

    found = rows_needed(metric, rows(400), 0.02, relative=True, confidence=0.9)
    assert found is not None
    few, many = found
    assert few < many
    enough, less = (
        within(metric, same, [same], 0.02, relative=True, bootstrap=4000).probability
        for same in (rows(few), rows(few // 3))
    )
    assert enough == pytest.approx(0.9, abs=0.02)
    assert less < 0.6


def test_numbers_need_the_rows_that_an_interval_takes_and_0_is_never_shown() -> None:
    values = np.random.default_rng(0).normal(size=(2, 100))
    outcome = Outcome(values[0] + 2 * values[1], values[1])
    found = rows_needed("pearson", outcome, 0.9)
    assert found is not None
    assert found[0] == 60
    assert rows_needed("pearson", outcome, 0.0) is None
    assert rows_needed("accuracy", Outcome(np.array([1, 0]), np.array([1, 0])), 0.0) is None
