from __future__ import annotations

from headcount.runs.budget import Budget, CountedRows, together
from headcount.tasks.encoding import encode_texts
from headcount.training.options import TrainOptions


def test_rows_are_counted_as_often_as_they_are_looked_at(tokenizer):
    budget = Budget()
    rows = CountedRows.of(
        encode_texts(["a cat", "a dog", "a king"], tokenizer, max_length=8), budget
    )
    for _ in range(2):
        list(rows.batches())
    list(rows.take([0]).batches())
    assert budget.measured == 7


def test_training_adds_up():
    budget = Budget()
    budget.train(examples=60, steps=2, rows=30)
    budget.train(examples=30, steps=1, rows=30)
    assert budget.summary().to_json() == {
        "epochs": 3.0, "examples": 90, "steps": 3, "examples_measured": 0,
    }  # fmt: skip


def test_one_training_as_long_as_two():
    first, second = TrainOptions(epochs=2), TrainOptions(epochs=1, learning_rate=1e-3)
    assert together(first, None) == first
    assert together(first, second) == TrainOptions(epochs=3, learning_rate=1e-3)
    assert together(TrainOptions(steps=5), TrainOptions(steps=7)).steps == 12
