from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from headcount.tasks import Examples, Task
from headcount.tasks.metrics import Outcome, score
from headcount.tasks.vocabulary import train_tokenizer
from headcount.training.doubts import doubts_about, no_better_than_guessing
from headcount.training.evaluate import evaluate, evaluate_rows
from headcount.training.finetune import finetune
from headcount.training.options import TrainOptions
from headcount.training.scored import scored_rows
from headcount.training.scoring import Scoring

from .conftest import tiny

SCORING = Scoring(bootstrap=200)


def doubts(model: Any, task: Task, tokenizer: Any, scoring: Scoring = SCORING) -> list[str]:
    rows = scored_rows(model, task, tokenizer, scoring)
    found = evaluate_rows(model, rows, tokenizer=tokenizer, scoring=scoring)[0]
    return doubts_about(found, rows, tokenizer, scoring)


def test_labels_that_are_exchanged_and_a_model_that_guesses(
    model: Any, tokenizer: Any, task: Task, caplog: pytest.LogCaptureFixture
) -> None:
    with torch.no_grad():
        model.classifier.weight.zero_()  # one answer throughout
    (guess,) = doubts(model, task, tokenizer)
    assert "is not better than guessing (0.5" in guess
    evaluate(model, task, scoring=SCORING, tokenizer=tokenizer)
    assert guess in caplog.text
    assert doubts(model, task, tokenizer, Scoring(bootstrap=0)) == []
    trained = tiny(tokenizer)
    options = TrainOptions(epochs=6, batch_size=16, learning_rate=3e-3, warmup=0.1)
    finetune(trained, task, options=options, tokenizer=tokenizer, evaluation=False)
    assert doubts(trained, task, tokenizer) == []

    def exchanged(split: str) -> Examples:
        rows = task.loader(split)
        assert rows.labels is not None
        return Examples(rows.texts, np.asarray(1 - rows.labels))

    (wrong,) = doubts(trained, replace(task, loader=exchanged), tokenizer)
    assert wrong.startswith("accuracy 0.0")
    assert "is worse than guessing (0.5" in wrong
    assert "--labels" in wrong


def test_of_too_few_rows_no_doubt_is_said() -> None:
    """20 rows of a correlation have no interval, and "not better than guessing" is not known."""
    values = np.arange(20.0)
    outcome = Outcome(values + np.random.default_rng(0).normal(size=20), values)
    found: Any = SimpleNamespace(outcome=outcome, scores=(score("spearman", outcome),), score=0.9)
    assert no_better_than_guessing(found, SCORING) is None


def test_of_an_undefined_score_no_doubt_is_said() -> None:
    """All labels equal: it was "spearman nan is not better than guessing"."""
    values = np.random.default_rng(0).normal(size=80)
    outcome = Outcome(values, np.ones(80))
    found: Any = SimpleNamespace(
        outcome=outcome, scores=(score("spearman", outcome),), score=np.nan
    )
    assert no_better_than_guessing(found, SCORING) is None


def test_texts_that_the_tokenizer_does_not_know(model: Any, tokenizer: Any, task: Task) -> None:
    def foreign(split: str) -> Examples:
        rows = task.loader(split)
        texts = [" ".join(f"ж{word}" for word in str(text).split()) for text in rows.texts[0]]
        return Examples((texts,), rows.labels)

    said = doubts(model, replace(task, loader=foreign), tokenizer)
    assert said[0].startswith("100 % of the tokens are unknown to the tokenizer ([UNK])")
    assert not any("unknown" in text for text in doubts(model, task, tokenizer))
    bytes_only = train_tokenizer(["the cat"], 300)  # it can write any text
    rows = scored_rows(tiny(bytes_only), replace(task, loader=foreign), bytes_only, SCORING)
    found = evaluate_rows(tiny(bytes_only), rows, tokenizer=bytes_only, scoring=SCORING)[0]
    assert not any("unknown" in text for text in doubts_about(found, rows, bytes_only, SCORING))


def test_texts_that_do_not_fit(model: Any, tokenizer: Any, task: Task) -> None:
    short = Scoring(bootstrap=0, max_length=6)
    (told,) = doubts(model, task, tokenizer, short)
    texts = task.load("dev").texts[0]
    reach = np.mean([len(tokenizer(text)["input_ids"]) >= 6 for text in texts])
    assert told.startswith(f"{100 * reach:.0f} % of the rows have as many tokens as --max-length")
    assert "allow, 6: what comes behind" in told
    assert doubts(model, task, tokenizer, Scoring(bootstrap=0)) == []
