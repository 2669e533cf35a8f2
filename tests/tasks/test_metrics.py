from __future__ import annotations

import builtins
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from headcount.errors import MissingExtraError, UsageError
from headcount.tasks import bleu
from headcount.tasks.metrics import (
    METRICS,
    Difference,
    Outcome,
    Score,
    difference,
    get_metric,
    score,
)

HYPOTHESES = ["the cat sat on the mat today", "a dog runs in the park", "no", "they sing a song"]
REFERENCES = ["the cat sat on a mat today .", "the dog runs in a park now", "yes", "they sang"]


def outcome_for(name: str, size: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    if name in ("spearman", "pearson"):
        labels = rng.integers(0, 6, size).astype(float)
        return labels + rng.normal(size=size).round(1), labels
    if name in ("recall@1", "perplexity"):
        tokens = rng.integers(1, 9, size)
        return np.column_stack([rng.integers(0, tokens + 1), rng.random(size) * tokens]), tokens
    if name == "bleu":
        picks = rng.integers(0, 4, size)
        return [HYPOTHESES[i] for i in picks], [REFERENCES[i] for i in picks]
    classes = 3 if name == "matthews" else 2
    labels = rng.integers(0, classes, size)
    return np.where(rng.random(size) < 0.7, labels, rng.integers(0, classes, size)), labels


def take(values: Any, rows: np.ndarray) -> Any:
    return values[rows] if isinstance(values, np.ndarray) else [values[i] for i in rows]


@pytest.mark.parametrize("name", METRICS)
@settings(max_examples=10)
@given(seed=st.integers(0, 10_000), size=st.integers(3, 40))
def test_a_weighted_score_is_the_score_of_the_drawn_rows(name: str, seed: int, size: int) -> None:
    metric = METRICS[name]
    predictions, labels = outcome_for(name, size, seed)
    drawn = np.random.default_rng(seed).integers(size, size=(4, size))
    weights = np.stack([np.bincount(rows, minlength=size) for rows in drawn]).astype(float)
    got = metric.weighted(predictions, labels)(weights)
    want = [metric.score(take(predictions, rows), take(labels, rows)) for rows in drawn]
    np.testing.assert_allclose(got, want, atol=1e-8)


def test_known_values() -> None:
    labels = np.array([1, 1, 0, 0, 1])
    said = np.array([1, 0, 0, 1, 1])
    assert get_metric("accuracy").score(said, labels) == pytest.approx(0.6)
    assert get_metric("f1").score(said, labels) == pytest.approx(2 / 3)
    assert get_metric("accuracy_f1").score(said, labels) == pytest.approx((0.6 + 2 / 3) / 2)
    assert get_metric("matthews").score(said, labels) == pytest.approx(1 / 6)
    tokens = np.array([2, 2])
    sums = np.array([[1, np.log(4) * 2], [2, np.log(4) * 2]])
    assert get_metric("recall@1").score(sums, tokens) == pytest.approx(0.75)
    assert get_metric("perplexity").score(sums, tokens) == pytest.approx(4.0)


def test_constant_predictions_score_zero_without_a_warning() -> None:
    labels = np.array([0.0, 1.0, 2.0])
    for name in ("spearman", "pearson"):
        result = score(name, Outcome(np.ones(3), labels), draws=50)
        assert (result.value, result.low, result.high) == (0.0, 0.0, 0.0)
    result = score("matthews", Outcome(np.ones(3, int), np.array([0, 1, 1])), draws=50)
    assert result.value == 0.0


@pytest.mark.parametrize("name", ["matthews", "f1", "accuracy_f1", "spearman", "pearson"])
@pytest.mark.parametrize("said", [[0, 0, 0, 0], [0, 1, 0, 2]])
def test_one_class_only_is_undefined(name: str, said: list[int]) -> None:
    outcome = Outcome(np.array(said), np.zeros(4, int))
    found = score(name, outcome, draws=30)
    assert np.isnan([found.value, found.low, found.high]).all()
    assert found.draws_undefined == 30
    assert str(found) == f"{name} undefined"
    assert found.to_json() == {
        "metric": name, "value": None, "low": None, "high": None, "draws_undefined": 30,
    }  # fmt: skip
    assert Score.from_json(found.to_json()).to_json() == found.to_json()
    gap = difference(name, outcome, outcome, draws=30)
    assert (str(gap), gap.to_json()["value"], gap.draws_undefined) == ("undefined", None, 30)


def test_a_model_that_says_one_class_only_has_scores() -> None:
    labels = np.array([0, 1, 1, 0])
    for name in ("matthews", "f1", "spearman", "pearson"):
        assert get_metric(name).score(np.zeros(4, int), labels) == 0.0
    assert get_metric("f1").score(np.ones(3, int), np.ones(3, int)) == 1.0


@pytest.mark.parametrize("name", ["matthews", "f1", "spearman", "pearson"])
def test_draws_without_a_score_are_left_out_and_counted(name: str) -> None:
    predictions, labels = np.array([1, 0, 1, 0, 0]), np.array([1, 0, 0, 0, 0])
    found = score(name, Outcome(predictions, labels), draws=200, seed=5)
    drawn = np.random.default_rng(5).integers(5, size=(200, 5))
    values = [METRICS[name].score(predictions[rows], labels[rows]) for rows in drawn]
    assert found.draws_undefined == np.isnan(values).sum() > 20
    assert found.low == pytest.approx(np.nanquantile(values, 0.025))
    assert found.high == pytest.approx(np.nanquantile(values, 0.975))
    assert f", {found.draws_undefined} draws undefined" in str(found)


def test_matthews_of_many_classes_needs_little_memory() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 400, 1000)
    said = np.where(rng.random(1000) < 0.5, labels, rng.integers(0, 400, 1000))
    tracemalloc.start()
    try:
        found = score("matthews", Outcome(said, labels), draws=30)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50_000_000  # one number for every pair of classes and row would be 1.3 GB
    drawn = np.random.default_rng(0).integers(1000, size=(30, 1000))
    values = [METRICS["matthews"].score(said[rows], labels[rows]) for rows in drawn]
    assert [found.low, found.high] == pytest.approx(list(np.quantile(values, [0.025, 0.975])))


def test_the_interval_is_seeded_covers_the_score_and_shrinks() -> None:
    small, large = (outcome_for("accuracy", n, 1) for n in (100, 10_000))
    first = score("accuracy", Outcome(*small), seed=3)
    assert first == score("accuracy", Outcome(*small), seed=3)
    assert first != score("accuracy", Outcome(*small), seed=4)
    assert first.low < first.value < first.high
    wide = first.high - first.low
    # the binomial interval is what the bootstrap must come close to
    p = first.value
    assert wide == pytest.approx(2 * 1.96 * (p * (1 - p) / 100) ** 0.5, rel=0.15)
    second = score("accuracy", Outcome(*large), seed=3)
    assert second.high - second.low == pytest.approx(wide / 10, rel=0.2)


def test_the_spearman_interval_agrees_with_drawing_and_sorting() -> None:
    predictions, labels = outcome_for("spearman", 200, 0)
    result = score("spearman", Outcome(predictions, labels), draws=2000)
    rng = np.random.default_rng(9)
    rows = rng.integers(200, size=(2000, 200))
    slow = [spearmanr(predictions[r], labels[r]).statistic for r in rows]
    assert result.low == pytest.approx(np.quantile(slow, 0.025), abs=0.02)
    assert result.high == pytest.approx(np.quantile(slow, 0.975), abs=0.02)


def before_and_after(
    name: str, size: int, seed: int, share: float = 0.125
) -> tuple[Outcome, Outcome]:
    """Two models on the same rows; the second says something else in a share of them."""
    predictions, labels = outcome_for(name, size, seed)
    rng = np.random.default_rng(seed + 1)
    changed = rng.random(size) < share
    if name == "bleu":
        other = ["a bird" if hit else said for said, hit in zip(predictions, changed, strict=True)]
    elif name in ("recall@1", "perplexity"):
        other = np.where(changed[:, None], predictions * 0.5, predictions)
    elif name in ("spearman", "pearson"):
        other = predictions + changed * rng.normal(size=size)
    else:
        other = np.where(changed, 1 - np.minimum(predictions, 1), predictions)
    return Outcome(predictions, labels), Outcome(other, labels)


@pytest.mark.parametrize("name", METRICS)
def test_a_difference_is_that_of_a_plain_loop_over_drawn_rows(name: str) -> None:
    before, after = before_and_after(name, 60, 4)
    found = difference(name, before, after, draws=40, seed=7)
    drawn = np.random.default_rng(7).integers(60, size=(40, 60))
    metric = METRICS[name].score
    gaps = [
        metric(take(after.predictions, rows), take(after.labels, rows))
        - metric(take(before.predictions, rows), take(before.labels, rows))
        for rows in drawn
    ]
    want = metric(after.predictions, after.labels) - metric(before.predictions, before.labels)
    assert found.value == pytest.approx(want, abs=1e-12)
    assert [found.low, found.high] == pytest.approx(
        np.nanquantile(gaps, [0.025, 0.975]).tolist(), abs=1e-8
    )
    assert found.draws_undefined == np.isnan(gaps).sum()
    assert found.low < found.high


def test_the_interval_of_a_difference_is_far_narrower_than_those_of_the_scores() -> None:
    before, after = before_and_after("accuracy", 2000, 0, share=0.02)
    wide = [one.high - one.low for one in (score("accuracy", x) for x in (before, after))]
    found = difference("accuracy", before, after)
    assert found.high - found.low < 0.5 * min(wide)
    same = difference("accuracy", before, before)
    assert (same.value, same.low, same.high) == (0, 0, 0)


def test_a_difference_is_printed_with_signs() -> None:
    assert str(Difference(metric="f1", value=-0.003, low=-0.0114, high=0.004)) == (
        "\N{MINUS SIGN}0.003 [\N{MINUS SIGN}0.011, +0.004]"
    )
    assert str(Difference(metric="f1", value=0.0, low=-0.0001, high=12.5)) == (
        "0.000 [0.000, +12.500]"
    )
    outcome = Outcome(np.array([1, 0]), np.array([1, 1]))
    right = Outcome(np.array([1, 1]), np.array([1, 1]))
    assert str(difference("accuracy", outcome, right, draws=0)) == "+0.500"


def test_a_difference_of_other_rows_is_refused() -> None:
    labels = np.array([0, 1, 1])
    one = Outcome(labels, labels)
    for other in (Outcome(labels[:2], labels[:2]), Outcome(labels, 1 - labels)):
        with pytest.raises(UsageError, match="needs the same rows before and after"):
            difference("accuracy", one, other)
    none = Outcome(np.array([]), np.array([]))
    with pytest.raises(UsageError, match="nothing to score"):
        difference("accuracy", none, none)


@pytest.mark.parametrize("name", ["matthews", "spearman", "pearson"])
def test_an_interval_stays_inside_the_metrics_range(name: str) -> None:
    # perfect but for rounding: sums of squares of thirds do not come out even
    values = np.random.default_rng(3).integers(0, 7, 50)
    for sign in (1, -1):
        predictions = values if name == "matthews" else sign * values / 3
        found = score(name, Outcome(predictions, values))
        assert -1 <= found.low <= found.high <= 1


def test_no_draws_no_interval_and_no_rows_no_score() -> None:
    result = score("accuracy", Outcome(np.array([1]), np.array([1])), draws=0)
    assert result.value == 1.0
    assert np.isnan(result.low)
    with pytest.raises(UsageError, match="nothing to score"):
        score("accuracy", Outcome(np.array([]), np.array([])))
    with pytest.raises(UsageError, match=r"no metric 'acuracy'. Did you mean 'accuracy'\?"):
        get_metric("acuracy")


def test_bleu_signature_and_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "tok:13a" in bleu.signature()
    real = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("sacrebleu"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtraError, match=r"pip install 'headcount\[mt\]'"):
        bleu.corpus_bleu(["a"], ["a"])


def test_spaced_full_stops_are_no_reason_to_warn(caplog: pytest.LogCaptureFixture) -> None:
    texts = ["a b c d ."] * 200
    assert bleu.corpus_bleu(texts, texts) == pytest.approx(100)
    assert not caplog.records
