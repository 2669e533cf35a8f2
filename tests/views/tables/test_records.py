from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rich.console import Console

from headcount.runs.kinds.importance import ImportanceOptions, ImportanceSummary
from headcount.runs.kinds.train import Train, TrainResult
from headcount.runs.record import Record
from headcount.runs.run import Run
from headcount.views.tables.records import record_table, train_table
from runs.whole import result

TRAINED = result(TrainResult, {
    "task": "sst2", "rows_trained": 90, "steps": 3, "resumed_from": 2, "last_loss": 0.5,
    "evaluation": {"split": "dev", "n": 9, "scores": {
        "f1": {"metric": "f1", "value": 0.5, "low": None, "high": None}}},
})  # fmt: skip


def shown(table) -> str:
    console = Console(width=100)
    with console.capture() as captured:
        console.print(table)
    return " ".join(captured.get().split())


def test_a_training_says_its_rows_steps_and_loss():
    text = shown(train_table(TRAINED, 1.25))
    assert "out run" in shown(train_table(TRAINED, 1.25, Path("run")))
    assert "dev f1 0.5000 n 9" in text
    assert "rows 90 steps 3 seconds 1.2" in text
    assert "resumed from step 2 last loss 0.5000" in text
    assert "resumed" not in shown(train_table(replace(TRAINED, resumed_from=None), 1.0))
    run = Run("train", "bert", task="sst2", options=Train())
    assert shown(record_table(Record(run=run, identity={}, result=TRAINED, seconds=1.25))) == text


def test_other_kinds_say_their_plain_values():
    run = Run("importance", "bert", task="sst2", options=ImportanceOptions())
    scores = result(ImportanceSummary, {"task": "sst2"})
    text = shown(record_table(Record(run=run, identity={}, result=scores)))
    assert "task sst2" in text
    assert "scores" not in text
