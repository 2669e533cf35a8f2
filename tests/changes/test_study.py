"""Two checkpoints with their tasks."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer

from headcount.changes.options import DriftOptions
from headcount.changes.study import transfer_study
from headcount.models.shipped import locate
from headcount.tasks import open_task
from headcount.tasks.calibration import InputOptions
from headcount.tasks.inputs import read_inputs
from training.conftest import tiny

READING = InputOptions(random=4, max_length=12)


@pytest.fixture(scope="module")
def models() -> tuple[list[Any], Any]:
    tokenizer = AutoTokenizer.from_pretrained(locate("pocket-bert"))
    before, after = tiny(tokenizer), tiny(tokenizer)
    with torch.no_grad():
        for parameter in after.bert.encoder.parameters():
            parameter.add_(0.01)
    return [before, after], tokenizer


def run(models: tuple[list[Any], Any], tasks: list[Any], **options: Any) -> tuple[Any, list[str]]:
    told: list[str] = []

    @contextmanager
    def bar(text: str) -> Generator[Callable[..., None]]:
        told.append(text)
        yield lambda *_: None

    both, tokenizer = models
    rows, name = read_inputs(both[0], tokenizer, READING)
    how = {"tokenizer": tokenizer, "input_options": READING, "options": DriftOptions(**options)}
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
