"""Recall against sets made by hand, and rankings against what they are made of."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.base.errors import UsageError
from headcount.changes.recall import (
    RankedHeads,
    head_counts,
    needed,
    rank_heads,
    recall,
    recall_curve,
    score_counts,
)
from headcount.heads import Layout, Mask, Scores
from headcount.sensitivity.gradients import importance
from headcount.tasks.encoding import encode
from headcount.training.evaluate import evaluate
from headcount.training.scoring import Scoring
from training.conftest import pets, tiny, tokenizer  # noqa: F401

PLAIN = Scoring(bootstrap=0)

LAYOUT = Layout.of(encoder=[3, 3])
RANKING = Scores(LAYOUT, (0.6, 0.1, 0.5, 0.2, 0.4, 0.3))
SCORES = {6: 0.80, 5: 0.82, 4: 0.76, 3: 0.71, 2: 0.75, 1: 0.40, 0: 0.10}


@pytest.mark.parametrize(
    ("share", "count"),
    # with three heads the score is below 90 %, so two are not enough though they score better
    [(1.0, 5), (0.95, 4), (0.9, 4), (0.88, 2), (0.5, 1), (0.125, 0), (0.0, 0)],
)
def test_the_heads_that_are_needed(share, count):
    found = needed(RANKING, SCORES, share)
    order = sorted(LAYOUT, key=lambda head: -RANKING[head])
    assert found.kept == set(order[:count])


def test_where_lower_is_better():
    perplexity = {6: 10.0, 3: 10.5, 2: 12.0, 0: 50.0}
    assert len(needed(RANKING, perplexity, 0.9, higher_is_better=False)) == 3
    assert len(needed(RANKING, perplexity, 0.2, higher_is_better=False)) == 0
    ranked = RankedHeads(task="t", metric="perplexity", ranking=RANKING, scores=perplexity)
    assert len(ranked.needed(0.9)) == 3
    assert ranked.to_json()["scores"][2] == {"kept": 2, "score": 12.0, "relative": 10 / 12}


heads = st.sets(st.sampled_from(list(LAYOUT)))


@given(heads, heads)
def test_recall_is_that_of_sets(wanted, kept):
    found = recall(Mask.of(LAYOUT, wanted), Mask.of(LAYOUT, kept))
    assert found.chance == len(kept) / 6
    assert (found.needed, found.kept, found.both) == (len(wanted), len(kept), len(wanted & kept))
    if wanted:
        assert found.value == len(wanted & kept) / len(wanted)
    else:
        assert np.isnan(found.value)
    draws = list(combinations(list(LAYOUT), len(kept)))
    as_many = sum(len(wanted & set(draw)) >= len(wanted & kept) for draw in draws)
    assert found.p == pytest.approx(as_many / len(draws))


def test_the_curve():
    other = Scores(LAYOUT, tuple(reversed(RANKING.values)))
    task = RankedHeads(task="t", metric="accuracy", ranking=RANKING, scores=SCORES)
    pretraining = RankedHeads(task="p", metric="recall@1", ranking=other, scores=SCORES)
    found = recall_curve(task, pretraining, shares=(0.5, 0.75, 0.95))
    order = sorted(LAYOUT, key=lambda head: -RANKING[head])
    backwards = sorted(LAYOUT, key=lambda head: -other[head])
    for share, count in ((0.5, 1), (0.75, 2), (0.95, 4)):
        expected = len(set(order[:4]) & set(backwards[:count])) / 4
        assert found[share].value == expected
        assert found[share].chance == count / 6
    same = recall_curve(task, task, shares=(0.9,))[0.9]
    assert same.value == 1


@pytest.mark.parametrize(
    ("scores", "share", "said"),
    [
        (SCORES, 1.1, "between 0 and 1, not 1.1"),
        ({5: 0.8, 0: 0.1}, 0.9, "one with all 6 heads"),
        ({}, 0.9, "one with all 6 heads"),
        ({6: 0.0, 0: 0.0}, 0.9, "no share of that"),
        ({6: -0.1, 0: 0.0}, 0.9, "no share of that"),
        ({6: float("nan"), 0: 0.0}, 0.9, "no share of that"),
    ],
)
def test_scores_without_a_share(scores, share, said):
    with pytest.raises(UsageError, match=said):
        needed(RANKING, scores, share)


def test_heads_of_two_models():
    with pytest.raises(UsageError, match="different models"):
        recall(Mask.full(LAYOUT), Mask.full(Layout.of(encoder=[3])))


@given(st.integers(0, 400), st.integers(1, 40))
def test_counts_go_from_all_to_none(total, points):
    counts = head_counts(total, points)
    assert counts[0] == total
    assert counts[-1] == 0
    assert counts == sorted(set(counts), reverse=True)
    assert len(counts) == min(points, total) + 1


def test_no_counts():
    with pytest.raises(UsageError, match="At least one"):
        head_counts(12, 0)


def test_the_ranking_is_importance_and_the_scores_are_evaluations(tokenizer):  # noqa: F811
    model, task = tiny(tokenizer), pets(rows=40)
    rows = encode(task, task.load("train"), tokenizer, max_length=32)
    ranking = rank_heads(model, task, rows)
    assert ranking.values == pytest.approx(importance(model, rows, normalize="l1").values, rel=1e-6)
    plain = rank_heads(model, task, rows, normalize="none")
    assert plain.values == pytest.approx(importance(model, rows).values, rel=1e-6)
    found = score_counts(model, task, ranking, points=4, tokenizer=tokenizer)
    assert list(found.scores) == [12, 9, 6, 3, 0]
    for count, score in found.scores.items():
        mask = ranking.keep_best(count)
        assert score == evaluate(model, task, mask, tokenizer=tokenizer, scoring=PLAIN).score
    assert (found.task, found.metric, found.ranking) == ("pets", "accuracy", ranking)
    with pytest.raises(UsageError, match="none, l1 or l2"):
        rank_heads(model, task, rows, normalize="l3")
