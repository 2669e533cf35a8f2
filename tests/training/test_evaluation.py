from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from headcount.base.errors import HeadcountError, UsageError
from headcount.heads import Mask
from headcount.models.find import layout
from headcount.tasks import Task
from headcount.training.evaluate import evaluate
from headcount.training.evaluation import Evaluation, difference, save_predictions
from headcount.training.scoring import Scoring
from models.zoo import build


def test_what_a_mask_costs_has_an_interval_of_its_own(
    model: Any, tokenizer: Any, task: Task
) -> None:
    heads = layout(model)
    masks = [Mask.full(heads), Mask.parse("444", heads), Mask.parse("344", heads)]
    full, same, less = evaluate(model, task, masks, tokenizer=tokenizer)
    nothing = difference(full, same)
    assert nothing.low < nothing.value == 0 < nothing.high
    assert full.scores[0].low < full.score < full.scores[0].high
    cost = difference(full, less)
    assert cost.metric == "accuracy"
    assert cost.value == pytest.approx(less.score - full.score)
    assert cost.low <= cost.value <= cost.high
    assert difference(full, less, metric="matthews").metric == "matthews"
    assert "outcome" not in full.to_json()


def test_a_difference_of_other_rows_or_tasks_is_refused(
    model: Any, tokenizer: Any, task: Task, make_task: Any
) -> None:
    scoring = Scoring(bootstrap=0, limit=20)
    found = evaluate(model, task, tokenizer=tokenizer, scoring=scoring)
    other = evaluate(model, task, tokenizer=tokenizer, scoring=replace(scoring, seed=1))
    assert found.rows != other.rows
    with pytest.raises(UsageError, match="the same rows of pets dev"):
        difference(found, other)
    train = evaluate(model, task, tokenizer=tokenizer, scoring=replace(scoring, split="train"))
    with pytest.raises(UsageError, match="not pets dev and pets train"):
        difference(found, train)
    saved = Evaluation.from_json(found.to_json())
    assert saved.rows == found.rows
    with pytest.raises(UsageError, match="evaluate both models again"):
        difference(saved, found)


def test_language_models_are_compared_token_by_token(tokenizer: Any) -> None:
    model = build("distilbert", vocab_size=len(tokenizer))
    scoring = Scoring(limit=20, bootstrap=0)
    first, same, short = (
        evaluate(model, "pocket-corpus", tokenizer=tokenizer, scoring=each).rows
        for each in (scoring, scoring, replace(scoring, max_length=8))
    )
    assert first == same != short


def test_several_predictions_in_one_file(
    model: Any, tokenizer: Any, task: Task, tmp_path: Path
) -> None:
    heads = layout(model)
    masks = [Mask.full(heads), Mask.parse("004", heads)]
    found = evaluate(model, task, masks, tokenizer=tokenizer, scoring=Scoring(bootstrap=0, limit=5))
    saved = pq.read_table(save_predictions(found, tmp_path / "p.parquet")).to_pydict()
    assert saved["heads_kept"] == ["444"] * 5 + ["004"] * 5
    assert saved["row"] == [0, 1, 2, 3, 4] * 2


def test_predictions_that_cannot_be_written_leave_nothing(
    model: Any, tokenizer: Any, task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(table: Any, path: Path) -> None:
        path.write_bytes(b"PAR1")
        raise OSError(28, "No space left on device")

    found = evaluate(model, task, tokenizer=tokenizer, scoring=Scoring(limit=5, bootstrap=0))
    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(HeadcountError, match="No space left on device"):
        found.save_predictions(tmp_path / "p.parquet")
    assert os.listdir(tmp_path) == []
