from __future__ import annotations

from rich.console import Console

from headcount.views.tables.records import record_table, train_table

TRAINED = {
    "kind": "train", "task": "sst2", "rows_trained": 90, "steps": 3, "seconds": 1.25,
    "resumed_from": 2, "last_loss": 0.5, "evaluation": None, "out": "run",
}  # fmt: skip


def shown(table) -> str:
    console = Console(width=100)
    with console.capture() as captured:
        console.print(table)
    return " ".join(captured.get().split())


def test_a_training_says_its_rows_steps_and_loss():
    text = shown(train_table(TRAINED))
    assert "rows 90 steps 3 seconds 1.2" in text
    assert "resumed from step 2 last loss 0.5000" in text
    assert "resumed" not in shown(train_table(TRAINED | {"resumed_from": None}))
    assert shown(record_table(TRAINED)) == text


def test_other_kinds_say_their_plain_values():
    text = shown(record_table({"kind": "importance", "task": "sst2", "scores": {"a": 1}}))
    assert "task sst2" in text
    assert "scores" not in text
