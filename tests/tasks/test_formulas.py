from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.stats import spearmanr

from headcount.tasks.formulas import constant, from_sums, ratio, sum_by
from headcount.tasks.metrics import (
    METRICS,
    Outcome,
    Score,
    difference,
    get_metric,
    score,
)
from tasks.outcomes import outcome_for


def test_a_metric_of_sums_under_weights_is_that_of_repeated_rows() -> None:
    mean = from_sums(
        lambda said, right: np.stack([said == right, np.ones(len(right))], 1),
        lambda sums: ratio(sums[:, 0], sums[:, 1]),
    )
    said, right = np.array([1, 0, 1]), np.array([1, 1, 1])
    weights = np.array([[1.0, 1, 1], [2, 0, 0], [0, 3, 1], [0, 0, 0]])
    assert mean(said, right)(weights).tolist() == [2 / 3, 1, 0.25, 0]


def test_sums_by_group_are_those_of_a_loop() -> None:
    groups = np.array([2, 0, 1, 0, 2, 2])
    weights = np.arange(12.0).reshape(2, 6)
    wanted = [[row[groups == group].sum() for group in range(3)] for row in weights]
    assert sum_by(groups)(weights).tolist() == wanted


def test_nothing_by_zero_and_what_is_constant() -> None:
    assert ratio(np.array([1.0, 2.0]), np.array([0.0, 4.0]), nothing=7.0).tolist() == [7, 0.5]
    assert constant(np.array([3.0]))
    assert constant(np.array([3.0, 3.0]))
    assert not constant(np.array([3.0, 4.0]))


@pytest.mark.parametrize("name", ["matthews", "f1", "accuracy_f1", "spearman", "pearson"])
@pytest.mark.parametrize("said", [[0, 0, 0, 0], [0, 1, 0, 2]])
def test_one_class_only_is_undefined(name: str, said: list[int]) -> None:
    outcome = Outcome(np.array(said), np.zeros(4, int))
    found = score(name, outcome, bootstrap=30)
    assert np.isnan([found.value, found.low, found.high]).all()
    assert str(found) == f"{name} undefined"
    assert found.to_json() == {"metric": name, "value": None, "low": None, "high": None}
    assert Score.from_json(found.to_json()).to_json() == found.to_json()
    gap = difference(name, outcome, outcome, bootstrap=30)
    assert (str(gap), gap.to_json()["value"], gap.to_json()["low"]) == ("undefined", None, None)


def test_a_model_that_says_one_class_only_has_scores() -> None:
    labels = np.array([0, 1, 1, 0])
    for name in ("matthews", "f1", "spearman", "pearson"):
        assert get_metric(name).score(np.zeros(4, int), labels) == 0.0
    assert get_metric("f1").score(np.ones(3, int), np.ones(3, int)) == 1.0


def test_matthews_of_many_classes_needs_little_memory() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 400, 1000)
    said = np.where(rng.random(1000) < 0.5, labels, rng.integers(0, 400, 1000))
    tracemalloc.start()
    try:
        found = score("matthews", Outcome(said, labels), bootstrap=30)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50_000_000  # one number for every pair of classes and row would be 1.3 GB
    drawn = np.random.default_rng(0).integers(1000, size=(30, 1000))
    values = [METRICS["matthews"].score(said[rows], labels[rows]) for rows in drawn]
    assert [found.low, found.high] == pytest.approx(
        list(np.quantile(values, [0.025, 0.975])), abs=0.015
    )


def test_the_spearman_interval_agrees_with_drawing_and_sorting() -> None:
    predictions, labels = outcome_for("spearman", 200, 0)
    result = score("spearman", Outcome(predictions, labels), bootstrap=2000)
    rng = np.random.default_rng(9)
    rows = rng.integers(200, size=(2000, 200))
    slow = [spearmanr(predictions[r], labels[r]).statistic for r in rows]
    assert result.low == pytest.approx(np.quantile(slow, 0.025), abs=0.02)
    assert result.high == pytest.approx(np.quantile(slow, 0.975), abs=0.02)
