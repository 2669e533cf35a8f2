"""Against a plain loop: rows drawn one by one, metrics computed by scikit-learn and scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score

from headcount.errors import UsageError
from headcount.tasks.metrics import Outcome, difference
from headcount.tasks.within import within

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
    before, after = answers(0.1, 1, labels), answers(0.15, 2, labels)
    bound, draws, seed = 0.05, 300, 7
    found = within(metric, before, [after], bound, relative=relative, draws=draws, seed=seed)
    rng, kept = np.random.default_rng(seed), []
    score = ORACLES[metric]
    drawn = rng.integers(ROWS, size=(draws, ROWS))
    for rows in drawn:
        first = score(labels[rows], before.predictions[rows])  # type: ignore[call-overload]
        last = score(labels[rows], after.predictions[rows])  # type: ignore[call-overload]
        kept.append(first - last <= (bound * first if relative else bound) + 1e-9)
    assert found.chance == pytest.approx(np.mean(kept))
    assert 0 < found.chance < 1
    whole = [score(labels, each.predictions) for each in (before, after)]
    assert found.holds == (whole[0] - whole[1] <= (bound * whole[0] if relative else bound))
    assert found.difference == difference(metric, before, after, draws=draws, seed=seed)


def test_of_perplexity_the_loss_is_a_rise() -> None:
    tokens = np.full(20, 10.0)
    nll = np.random.default_rng(0).random(20) * 30
    before = Outcome(np.column_stack([np.zeros(20), nll]), tokens)
    worse = Outcome(np.column_stack([np.zeros(20), nll * 1.2]), tokens)
    assert within("perplexity", before, [worse], 0.01, relative=True).chance == 0
    assert within("perplexity", worse, [before], 0.01, relative=True).chance == 1
    rise = np.exp(nll.sum() * 1.2 / 200) / np.exp(nll.sum() / 200) - 1
    for bound, holds in ((rise * 0.99, False), (rise * 1.01, True)):
        assert within("perplexity", before, [worse], bound, relative=True).holds is holds


def test_nothing_lost_is_within_nothing(labels) -> None:
    one = answers(0.2, 1, labels)
    found = within("accuracy", one, [one], 0.0)
    assert (found.chance, found.holds, found.difference.value) == (1.0, True, 0.0)


def test_several_models_are_drawn_as_rows_are(labels) -> None:
    """The mean of their scores, and an interval as wide as a plain loop over rows and models."""
    before = answers(0.1, 1, labels)
    models = [answers(wrong, 10 + place, labels) for place, wrong in enumerate((0.1, 0.2, 0.4))]
    found = within("accuracy", before, models, 0.1, draws=4000, seed=3)
    each = [(model.predictions == labels).mean() for model in models]
    assert found.difference.value == pytest.approx(
        np.mean(each) - (before.predictions == labels).mean()
    )
    rng, drawn = np.random.default_rng(99), []
    for _ in range(4000):
        rows = rng.integers(ROWS, size=ROWS)
        several = [models[number] for number in rng.integers(3, size=3)]
        mean = np.mean([(model.predictions == labels)[rows].mean() for model in several])
        drawn.append(mean - (before.predictions == labels)[rows].mean())
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert found.difference.low == pytest.approx(low, abs=0.02)
    assert found.difference.high == pytest.approx(high, abs=0.02)
    assert found.chance == pytest.approx(np.mean(np.array(drawn) >= -0.1 - 1e-9), abs=0.03)
    alone = within("accuracy", before, models[1:2], 0.1, draws=4000, seed=3)
    assert alone.difference.high - alone.difference.low < high - low


def test_without_draws_there_is_no_chance(labels) -> None:
    found = within("accuracy", answers(0.1, 1, labels), [answers(0.2, 2, labels)], 0.5, draws=0)
    assert math.isnan(found.chance)
    assert found.holds


def test_other_rows_are_refused(labels) -> None:
    with pytest.raises(UsageError, match="the same rows"):
        within("accuracy", answers(0, 1, labels), [answers(0, 1, 1 - labels)], 0.1)
