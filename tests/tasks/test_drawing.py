from __future__ import annotations

import numpy as np
import pytest

from headcount.tasks.drawing import draw, table_of
from headcount.tasks.metrics import METRICS
from tasks.outcomes import outcome_for


def test_equal_rows_of_classes_are_one_and_every_class_has_an_unseen_row() -> None:
    labels = np.array([0, 0, 1, 1, 1])
    before, after = np.array([0, 0, 1, 1, 0]), np.array([0, 1, 1, 1, 0])
    table = table_of(METRICS["accuracy"], labels, [before, after], paired=True)
    rows = list(zip(table.labels.tolist(), *(each.tolist() for each in table.models), strict=True))
    assert rows == [
        (0, 0, 0), (0, 0, 1), (1, 0, 0), (1, 1, 1),
        (0, 0, 1), (1, 1, 0),  # right before, wrong after
        (0, 1, 0), (1, 0, 1),  # and the other way round
    ]  # fmt: skip
    assert table.counts.tolist() == [1, 1, 1, 2, 0, 0, 0, 0]
    assert table.unseen is not None
    lower, upper = table.unseen
    assert lower.tolist() == [0, 0, 0, 0, 0.5, 0.5, 0, 0]
    assert upper.tolist() == [0, 0, 0, 0, 0, 0, 0.5, 0.5]


def test_a_score_alone_has_one_more_wrong_and_one_more_right() -> None:
    table = table_of(METRICS["accuracy"], np.array([2, 2]), [np.array([2, 2])], paired=False)
    assert table.labels.tolist() == [2, 2, 2]
    assert table.models[0].tolist() == [2, 3, 2]


@pytest.mark.parametrize("name", METRICS)
def test_where_no_row_changed_the_draws_still_differ(name: str) -> None:
    """The interval of the difference was [0, 0], and the probability 1, whatever the rows."""
    predictions, labels = outcome_for(name, 80, 3)
    found = draw(
        METRICS[name], labels, [predictions, predictions], paired=True, bootstrap=200, seed=0
    )
    low, high = found.interval(lambda values: values[:, 1] - values[:, 0])
    assert low < 0 < high


@pytest.mark.parametrize("name", ["pearson", "perplexity", "bleu"])
def test_rows_of_numbers_are_each_their_own_once_one_changed(name: str) -> None:
    predictions, labels = outcome_for(name, 80, 3)
    other = (
        predictions[1:2] + predictions[1:]
        if isinstance(predictions, list)
        else (np.concatenate([predictions[1:2] * 1.1, predictions[1:]]))
    )
    table = table_of(METRICS[name], labels, [predictions, other], paired=True)
    assert table.unseen is None
    assert (table.counts == 1).all()
    assert len(table.counts) == 80


def test_draws_stay_inside_the_range_of_the_metric() -> None:
    predictions, labels = outcome_for("pearson", 70, 1)
    found = draw(METRICS["pearson"], labels, [labels * 1.0], paired=False, bootstrap=200, seed=0)
    assert found.upper.max() <= 1
    assert len(predictions) == 70


def test_seeds_are_as_far_apart_as_they_are() -> None:
    """The mean of two is drawn with the spread of the mean of two, not with less."""
    labels = np.arange(4000) % 2
    said = [np.where(np.arange(4000) % 10 < wrong, 1 - labels, labels) for wrong in (2, 4)]
    found = draw(METRICS["accuracy"], labels, said, paired=False, bootstrap=4000, seed=0)
    assert found.lower.shape == (4000, 1)
    # standard error of the mean of 0.8 and 0.6, and nearly nothing from the rows
    assert found.upper[:, 0].mean() == pytest.approx(0.7, abs=0.01)
    assert found.lower.std() == pytest.approx(0.1, abs=0.012)
