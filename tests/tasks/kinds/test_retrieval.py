"""Retrieval against nDCG and recall by hand, query by query."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

import headcount as hc
from headcount.tasks import Examples, Task
from headcount.tasks.encoding import encode, examples_fingerprint, rows_fingerprint
from headcount.tasks.kinds.retrieval import ranked_scores
from headcount.training.evaluate import evaluate
from headcount.training.scored import scored_rows
from models.sentence_folders import tiny_encoder
from tasks.kinds.test_embedding import load as texts_of
from tasks.kinds.test_embedding import vectors

CORPUS = [*texts_of("the corpus").texts[0][:40]]


def load(split: str) -> Examples:
    rng = np.random.default_rng(len(split))
    queries = texts_of(split).texts[0]
    grades = [
        {int(text): int(rng.integers(-1, 3)) for text in rng.choice(40, rng.integers(1, 15), False)}
        for _ in queries
    ]
    return Examples((queries, [json.dumps(judged) for judged in grades]), corpus=CORPUS)


TASK = Task(
    name="search", kind="retrieval", texts=("query", "judgments"),
    metrics=("ndcg@10", "recall@10"), loader=load,
)  # fmt: skip


def by_hand(cosines: np.ndarray, grades: dict[int, int]) -> tuple[float, float]:
    order = sorted(range(len(cosines)), key=lambda at: -cosines[at])[:10]
    gain = sum(max(grades.get(at, 0), 0) / math.log2(2 + rank) for rank, at in enumerate(order))
    best = sorted((max(grade, 0) for grade in grades.values()), reverse=True)[:10]
    ideal = sum(grade / math.log2(2 + rank) for rank, grade in enumerate(best))
    relevant = [at for at, grade in grades.items() if grade > 0]
    if not relevant:
        return 0.0, 0.0
    return gain / ideal, len({*relevant} & {*order}) / len(relevant)


@pytest.mark.parametrize("mask", [None, "22"])
def test_scores_by_hand(tokenizer: Any, mask: str | None) -> None:
    model = tiny_encoder(tokenizer)
    kept = None if mask is None else hc.Mask.parse(mask, hc.layout(model))
    found = evaluate(model, TASK, kept, tokenizer=tokenizer)
    small = model if kept is None else hc.remove(model, kept)
    examples = load("dev")
    cosines = vectors(small, tokenizer, examples.texts[0]) @ vectors(small, tokenizer, CORPUS).T
    grades = [
        {int(at): grade for at, grade in json.loads(str(text)).items()}
        for text in examples.texts[1]
    ]
    want = np.array([by_hand(*pair) for pair in zip(cosines, grades, strict=True)])
    np.testing.assert_allclose(found.predictions["ndcg"], want[:, 0], atol=1e-9)
    np.testing.assert_allclose(found.predictions["recall"], want[:, 1], atol=1e-9)
    assert [score.value for score in found.scores] == pytest.approx(want.mean(0))
    assert 0.1 < want[:, 0].mean() < 0.9


def test_ndcg_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    cosines, grades = rng.random((20, 50)), rng.integers(0, 4, (20, 50))
    found = [
        ranked_scores(row, {at: int(grade) for at, grade in enumerate(judged)})[0]
        for row, judged in zip(cosines, grades, strict=True)
    ]
    assert np.mean(found) == pytest.approx(ndcg_score(grades, cosines, k=10))


def test_the_query_itself_is_no_answer_and_what_is_missing_is_never_found() -> None:
    cosines = np.array([1.0, 0.5, 0.9])
    assert ranked_scores(cosines, {0: None, 2: 1}) == (1.0, 1.0)
    ideal = 1 + 1 / math.log2(3)
    assert ranked_scores(cosines, {0: 1, 7: 1}) == (pytest.approx(1 / ideal), 0.5)
    assert ranked_scores(cosines, {1: 0}) == (0.0, 0.0)
    assert ranked_scores(np.ones(30), {9: 1})[1] == 1.0  # of equals the first come first
    assert ranked_scores(np.ones(30), {10: 1})[1] == 0.0


def test_a_part_of_the_queries_meets_the_whole_corpus(tokenizer: Any) -> None:
    model = tiny_encoder(tokenizer)
    scored = scored_rows(model, TASK, tokenizer, hc.Scoring())
    part = scored.take(np.array([3, 1]))
    assert part.rows.corpus is not None
    assert (len(part.rows), len(part.rows.corpus), len(part.rows.with_corpus())) == (2, 40, 42)
    limited = evaluate(model, TASK, tokenizer=tokenizer, scoring=hc.Scoring(limit=5))
    whole = evaluate(model, TASK, tokenizer=tokenizer)
    assert limited.n == 5
    assert {*limited.predictions["ndcg"]} <= {*whole.predictions["ndcg"]}


def test_another_corpus_is_other_data(tokenizer: Any) -> None:
    examples = load("dev")
    other = Examples(examples.texts, corpus=[*CORPUS[:-1], "a cat"])
    assert examples_fingerprint(examples) != examples_fingerprint(other)
    rows = [rows_fingerprint(encode(TASK, each, tokenizer)) for each in (examples, other)]
    assert rows[0] != rows[1]
    tasks = TASK, replace(TASK, loader=lambda split: other)
    model = tiny_encoder(tokenizer)
    prints = [scored_rows(model, task, tokenizer, hc.Scoring()).fingerprint for task in tasks]
    assert prints[0] != prints[1]


def test_it_is_pruned_and_repaired(tokenizer: Any) -> None:
    found = hc.prune(
        tiny_encoder(tokenizer), "surgeon", 0.5, task=TASK, tokenizer=tokenizer, baseline=1,
        repair=(hc.Recover(),), calibration=hc.Calibration(samples=16),
    )  # fmt: skip
    assert len(found.mask) == 4
    assert found.record["scores"]["n"] == 64
