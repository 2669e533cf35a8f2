from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from headcount.tasks.metrics import (
    METRICS,
    Outcome,
    Score,
    difference,
    get_metric,
    score,
)


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
