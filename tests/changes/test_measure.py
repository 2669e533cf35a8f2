from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import pearsonr, spearmanr
from transformers import AutoTokenizer

import headcount as hc
from headcount.base.errors import UsageError
from headcount.changes.drift import drift
from headcount.changes.measure import transfer_study
from headcount.changes.options import DriftOptions
from headcount.changes.recall import RankedHeads
from headcount.changes.weights import weight_change
from headcount.heads import Layout, Scores
from headcount.models.shipped import locate
from headcount.tasks import open_task
from headcount.tasks.calibration import InputOptions
from headcount.tasks.inputs import read_inputs
from models.zoo import build
from training.conftest import tiny, tokenizer  # noqa: F401


def tokens(rows=6):
    generator = torch.Generator().manual_seed(0)
    return [{"input_ids": torch.randint(5, 60, (rows, 9), generator=generator)}]


def numbers(layout, seed=0):
    return Scores(layout, tuple(np.random.default_rng(seed).random(len(layout))))


@pytest.mark.parametrize("family", ["bert", "albert", "llama", "t5"])
def test_everything_at_once(family):
    first, second = build(family), build(family, seed=1)
    given = tokens()
    if family == "t5":
        given[0]["decoder_input_ids"] = given[0]["input_ids"][:, :5]
    scores = numbers(hc.layout(first))
    found = hc.transfer(first, second, given, importance=scores)
    assert found.drift.attention == drift(first, second, given).attention
    assert found.change.total == weight_change(first, second).total
    line = found.correlations["importance"]
    expected = pearsonr(found.drift.attention.values, scores.values)
    assert line.pearson == pytest.approx(expected.statistic)
    assert (line.low, line.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    slope, intercept = np.polyfit(found.drift.attention.values, scores.values, 1)
    assert (line.slope, line.intercept) == pytest.approx((slope, intercept))
    for stack, trends in found.trends().items():
        rows = [row for row in found.drift.layers if row.stack == stack]
        if len(rows) > 2:
            expected = spearmanr(range(len(rows)), [row.mean for row in rows]).statistic
            assert trends["attention"].spearman == pytest.approx(expected)
        assert ("hidden" in trends) == (stack != "cross")
    data = json.loads(json.dumps(found.to_json()))
    assert data["drift"]["n"] == 6
    assert data["layout"] == found.layout.to_json()
    assert data["importance"]["importance"] == scores.by_layer()


def test_texts_with_a_tokenizer(tokenizer):  # noqa: F811
    first, second = tiny(tokenizer), tiny(tokenizer)
    with torch.no_grad():
        second.bert.encoder.layer[1].attention.self.query.weight.mul_(2)
    texts = ["the king sees a small cat", "a queen", "the baker is near the young king"]
    found = hc.transfer(first, second, texts, tokenizer=tokenizer, name="three lines")
    assert found.drift.n == 3
    assert found.drift.layers[0].mean == 0
    assert found.drift.layers[1].mean > 0
    assert found.provenance["inputs"] == "three lines"
    assert hc.transfer(first, second, texts, tokenizer=tokenizer, samples=2).drift.n == 2


def test_identical_models():
    model = build("bert")
    found = hc.transfer(model, model, tokens(), importance=numbers(hc.layout(model)))
    assert set(found.drift.attention.values) == {0.0}
    assert set(found.change.total.values) == {0.0}
    assert np.isnan(found.correlations["importance"].pearson)


def test_recall_stands_beside_it():
    first, second = build("bert"), build("bert", seed=1)
    heads = hc.layout(first)
    scores = {16: 0.9, 8: 0.85, 4: 0.7, 0: 0.1}
    task = RankedHeads(task="t", metric="accuracy", ranking=numbers(heads, 1), scores=scores)
    other = RankedHeads(task="p", metric="recall@1", ranking=numbers(heads, 2), scores=scores)
    found = hc.transfer(first, second, tokens()).with_recall(task, other)
    at = found.recall[0.75]
    both = task.needed(0.9).kept & other.needed(0.75).kept
    assert at.value == len(both) / 8
    assert at.chance == 4 / 16
    data = found.to_json()
    assert next(row["at"] for row in data["recall"]) == 0.5
    assert [each["task"] for each in data["rankings"]] == ["t", "p"]
    assert data["recall_share"] == 0.9


def test_importance_of_another_model():
    first, second = build("bert"), build("bert", seed=1)
    with pytest.raises(UsageError, match="'mine' are of another model"):
        hc.transfer(first, second, tokens(), importance={"mine": numbers(Layout.of(encoder=[4]))})
    with pytest.raises(UsageError, match="no inputs"):
        hc.transfer(first, second, [])


READING = InputOptions(random=4, max_length=12)


@pytest.fixture(scope="module")
def models() -> tuple[list[Any], Any]:
    processor = AutoTokenizer.from_pretrained(locate("pocket-bert"))
    before, after = tiny(processor), tiny(processor)
    with torch.no_grad():
        for parameter in after.bert.encoder.parameters():
            parameter.add_(0.01)
    return [before, after], processor


def run(models: tuple[list[Any], Any], tasks: list[Any], **options: Any) -> tuple[Any, list[str]]:
    told: list[str] = []

    @contextmanager
    def bar(text: str) -> Generator[Callable[..., None]]:
        told.append(text)
        yield lambda *_: None

    both, processor = models
    rows, name = read_inputs(both[0], processor, READING)
    how = {"tokenizer": processor, "input_options": READING, "options": DriftOptions(**options)}
    return transfer_study(both, tasks, rows, name=name, bar=bar, **how), told


def test_without_tasks_there_is_drift_alone(models):
    found, told = run(models, [None, None])
    assert (found.drift.n, found.provenance["inputs"], found.provenance["samples"]) == (
        4,
        "random tokens",
        4,
    )
    assert (dict(found.importance), dict(found.recall)) == ({}, {})
    assert told == ["comparing"]


def test_one_task_on_other_data_has_two_names(models):
    task = open_task("pocket-sentiment", size=24)
    options = {"recall": True, "pretraining_task": task.name, "points": 2, "limit": 16}
    found, told = run(models, [task, task], importance_samples=8, **options)
    names = ["pocket-sentiment", "pre-training pocket-sentiment"]
    assert sorted(found.correlations) == names
    assert [each.task for each in found.ranked] == names
    assert found.provenance["recall_share"] == 0.9
    assert told[:3] == [*(f"importance on {name}" for name in names), "comparing"]
    assert len(told) == 5
