"""Runs asked once and again from their record: shared by the tests of every kind."""

from __future__ import annotations

import json

import pytest

import headcount as hc
from headcount.runs.kinds.train import Train
from headcount.runs.record import Record
from headcount.runs.run import Run
from headcount.tasks.calibration import InputOptions

TASK = "pocket-acceptability"
FEW = hc.Scoring(limit=20, bootstrap=5)
READING = InputOptions(random=3, max_length=12)


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A run that others start from, the folder it was carried out in, and its record."""
    training = hc.TrainOptions(steps=2, batch_size=8, learning_rate=3e-4)
    run = Run("train", "pocket", task=TASK, options=Train(training=training, rows=40))
    folder = tmp_path_factory.mktemp("trained") / "run"
    return run, folder, hc.run(run, folder)


def assert_asked_again(run: Run) -> Record:
    """A run's record, read back and asked again, gives the same."""
    first = hc.run(run)
    record = Record.from_json(json.loads(json.dumps(first.to_json(), default=str)))
    assert record.run == run
    again = hc.run(record.run)
    assert again.id == first.id
    left, right = (plain(each) for each in (first, again))
    assert without_seconds(left) == without_seconds(right)
    return first


def plain(record: Record) -> dict:
    """What came out, without what a clock says."""
    return json.loads(json.dumps(record.to_json(), default=str), parse_constant=str) | {
        "seconds": 0, "scores": without_seconds(record.to_json().get("scores")),
        "provenance": None, "drift": None,
    }  # fmt: skip


def without_seconds(value):
    if isinstance(value, dict):
        return {name: without_seconds(each) for name, each in value.items() if name != "seconds"}
    return [without_seconds(each) for each in value] if isinstance(value, list) else value
