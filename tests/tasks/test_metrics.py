from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from headcount.base.errors import UsageError
from headcount.tasks.metrics import (
    METRICS,
    Outcome,
    Score,
    difference,
    get_metric,
    score,
)
from tasks.outcomes import outcome_for


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
    labels = np.arange(60.0)
    for name in ("spearman", "pearson"):
        result = score(name, Outcome(np.ones(60), labels), bootstrap=50)
        assert (result.value, str(result)) == (
            0.0, f"{name} 0.0000 (no interval: the rows have no spread)",
        )  # fmt: skip
    result = score("matthews", Outcome(np.ones(3, int), np.array([0, 1, 1])), bootstrap=50)
    assert result.value == 0.0


@pytest.mark.parametrize(
    "name", ["spearman", "pearson", "perplexity", "recall@1", "bits_per_byte", "bleu"]
)
def test_too_few_rows_have_no_interval_and_it_says_how_many_it_takes(name: str) -> None:
    outcome = Outcome(*outcome_for(name, 8, 1))
    for found in (score(name, outcome), difference(name, outcome, outcome)):
        assert np.isnan([found.low, found.high]).all()
        assert str(found).endswith("(no interval: it takes 60 rows, and there are 8)")
        plain = found.to_json()
        assert (plain["low"], plain["high"]) == (None, None)
        assert plain["no_interval"] == "it takes 60 rows, and there are 8"
    saved = score(name, outcome)
    assert Score.from_json(saved.to_json()).no_interval == saved.no_interval
    enough = score(name, Outcome(*outcome_for(name, 60, 1)))
    assert enough.low < enough.value < enough.high


def test_the_interval_is_seeded_covers_the_score_and_shrinks() -> None:
    small, large = (outcome_for("accuracy", n, 1) for n in (100, 10_000))
    first = score("accuracy", Outcome(*small), seed=3)
    assert first == score("accuracy", Outcome(*small), seed=3)
    assert first != score("accuracy", Outcome(*small), seed=4)
    assert first.low < first.value < first.high
    wide = first.high - first.low
    exact = binomtest(round(100 * first.value), 100).proportion_ci(0.95)
    assert [first.low, first.high] == pytest.approx([exact.low, exact.high], abs=0.01)
    second = score("accuracy", Outcome(*large), seed=3)
    assert second.high - second.low == pytest.approx(wide / 10, rel=0.2)


def before_and_after(
    name: str, size: int, seed: int, share: float = 0.125
) -> tuple[Outcome, Outcome]:
    """Two models on the same rows; the second says something else in a share of them."""
    predictions, labels = outcome_for(name, size, seed)
    rng = np.random.default_rng(seed + 1)
    changed = rng.random(size) < share
    if isinstance(predictions, list):
        other = ["a bird" if hit else said for said, hit in zip(predictions, changed, strict=True)]
    elif predictions.ndim == 2:  # tokens: their bytes are those of the text, whatever is said
        halved = predictions * np.array([0.5, 0.5, 1.0])[: predictions.shape[1]]
        other = np.where(changed[:, None], halved, predictions)
    elif name in ("spearman", "pearson"):
        other = predictions + changed * rng.normal(size=size)
    else:
        other = np.where(changed, 1 - np.minimum(predictions, 1), predictions)
    return Outcome(predictions, labels), Outcome(other, labels)


@pytest.mark.parametrize("name", METRICS)
def test_a_difference_of_many_rows_is_that_of_a_plain_loop_over_drawn_rows(name: str) -> None:
    """One row more on a side is little among many: ends are where the plain bootstrap has them."""
    rows = 400
    before, after = before_and_after(name, rows, 4)
    found = difference(name, before, after, seed=7)
    drawn = np.random.default_rng(7).integers(rows, size=(300, rows))
    metric = METRICS[name].score
    gaps = [
        metric(take(after.predictions, rows), take(after.labels, rows))
        - metric(take(before.predictions, rows), take(before.labels, rows))
        for rows in drawn
    ]
    want = metric(after.predictions, after.labels) - metric(before.predictions, before.labels)
    assert found.value == pytest.approx(want, abs=1e-12)
    low, high = np.nanquantile(gaps, [0.025, 0.975])
    wide = high - low
    assert low - 0.25 * wide < found.low < low + 0.1 * wide
    assert high - 0.1 * wide < found.high < high + 0.25 * wide


@pytest.mark.parametrize("name", METRICS)
def test_where_no_row_changed_the_interval_is_not_of_width_0(name: str) -> None:
    """It was [0, 0], with 8 rows as with 8,000."""
    before, _ = before_and_after(name, 100, 4)
    found = difference(name, before, before)
    assert found.low < found.value == 0 < found.high
    more = difference(name, *[before_and_after(name, 2000, 4)[0]] * 2)
    assert more.high - more.low < 0.2 * (found.high - found.low)


def test_of_8_rows_without_a_change_much_is_possible() -> None:
    labels = np.array([0, 1] * 4)
    same = difference("accuracy", Outcome(labels, labels), Outcome(labels, labels))
    assert same.low == pytest.approx(-0.37, abs=0.04)
    assert same.high == pytest.approx(0.37, abs=0.04)


def test_the_interval_of_a_difference_is_far_narrower_than_those_of_the_scores() -> None:
    before, after = before_and_after("accuracy", 2000, 0, share=0.02)
    wide = [one.high - one.low for one in (score("accuracy", x) for x in (before, after))]
    found = difference("accuracy", before, after)
    assert found.high - found.low < 0.5 * min(wide)
    same = difference("accuracy", before, before)
    assert [2000 * same.low, 2000 * same.high] == pytest.approx([-3.7, 3.7], abs=0.7)


@pytest.mark.parametrize("name", ["accuracy", "f1", "matthews"])
def test_several_seeds_are_drawn_with_the_rows(name: str) -> None:
    before, after = before_and_after(name, 60, 4)
    _, other = before_and_after(name, 60, 4, share=0.6)
    seeds = [Outcome(each.predictions, before.labels) for each in (after, other)]
    metric = METRICS[name].score
    found, gap = (score(name, seeds, seed=7),
                  difference(name, before, seeds, seed=7))  # fmt: skip
    values = [metric(each.predictions, each.labels) for each in seeds]
    assert found.value == pytest.approx(np.mean(values))
    assert gap.value == pytest.approx(np.mean(values) - metric(before.predictions, before.labels))
    alone = [difference(name, before, each) for each in seeds]
    # the seeds are further apart than the rows are uncertain
    assert gap.high - gap.low > max(each.high - each.low for each in alone)
    assert found.low < min(values) + 0.1
    with pytest.raises(UsageError, match="with every seed"):
        score(name, [before, Outcome(before.predictions, 1 - before.labels)])


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
    values = np.random.default_rng(3).integers(0, 7, 80)
    for sign in (1, -1):
        predictions = values if name == "matthews" else sign * values / 3
        found = score(name, Outcome(predictions, values))
        assert found.no_interval or -1 <= found.low <= found.high <= 1
        assert (name == "matthews") == (not found.no_interval)  # each row is on one line


def test_no_draws_no_interval_and_no_rows_no_score() -> None:
    result = score("accuracy", Outcome(np.array([1]), np.array([1])), bootstrap=0)
    assert result.value == 1.0
    assert np.isnan(result.low)
    with pytest.raises(UsageError, match="nothing to score"):
        score("accuracy", Outcome(np.array([]), np.array([])))
    with pytest.raises(UsageError, match=r"no metric 'acuracy'. Did you mean 'accuracy'\?"):
        get_metric("acuracy")


def test_bits_per_byte_are_nats_of_tokens_by_the_bytes_they_stand_for() -> None:
    outcome = Outcome(np.array([[1, 8.0, 10], [0, 4.0, 6]]), np.array([3, 2]))
    assert score("bits_per_byte", outcome, bootstrap=0).value == pytest.approx(12 / 16 / np.log(2))
    assert score("perplexity", outcome, bootstrap=0).value == pytest.approx(np.exp(12 / 5))
    unknown = Outcome(np.array([[1, 8.0, 0]]), np.array([3]))
    assert np.isnan(score("bits_per_byte", unknown, bootstrap=0).value)


def test_a_rise_of_perplexity_is_a_share_too() -> None:
    before = Outcome(np.array([[1, 10 * np.log(20.0)]]), np.array([10]))
    after = Outcome(np.array([[1, 10 * np.log(21.0)]]), np.array([10]))
    rise = difference("perplexity", before, after, bootstrap=0)
    assert rise.relative == pytest.approx(0.05)
    assert str(rise) == "+1.000 (+5.0 %)"
    assert rise.to_json()["relative"] == pytest.approx(0.05)
    classes = Outcome(np.array([1, 0]), np.array([1, 1]))
    assert "relative" not in difference("accuracy", classes, classes, bootstrap=0).to_json()
