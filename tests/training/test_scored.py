from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset
from torch.utils.data import DataLoader

from headcount.base.errors import UsageError
from headcount.heads import Mask
from headcount.models.find import layout
from headcount.tasks import Task
from headcount.training.evaluate import evaluate
from headcount.training.scoring import Scoring
from models.zoo import build

from .conftest import tiny

PLAIN = Scoring(bootstrap=0)


def labelled(task: Task, tokenizer: Any) -> list[dict[str, Any]]:
    """The task's rows as people have them: padded by hand, with labels."""
    rows = task.load("dev")
    assert rows.labels is not None
    made = tokenizer(list(rows.texts[0]), padding=True)
    return [
        {
            "input_ids": made["input_ids"][row],
            "attention_mask": made["attention_mask"][row],
            "labels": int(label),
        }
        for row, label in enumerate(rows.labels)
    ]


def test_rows_of_every_kind_score_as_their_task_does(
    model: Any, tokenizer: Any, task: Task
) -> None:
    rows = labelled(task, tokenizer)
    want = evaluate(model, task, tokenizer=tokenizer, scoring=PLAIN)

    def collate(items: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        return {name: torch.tensor([item[name] for item in items]) for name in items[0]}

    loader: Any = DataLoader(rows, batch_size=20, collate_fn=collate)  # type: ignore[arg-type]
    texts = {"text": list(task.load("dev").texts[0]), "label": [row["labels"] for row in rows]}
    for data in (rows, Dataset.from_list(rows), loader, list(loader), Dataset.from_dict(texts)):
        found = evaluate(model, data, tokenizer=tokenizer, scoring=PLAIN)
        assert (found.task, found.split, found.n) == ("rows", "given", 96)
        assert [each.metric for each in found.scores] == ["accuracy"]
        np.testing.assert_array_equal(found.predictions["logits"], want.predictions["logits"])
        assert found.score == want.score
    masks = [Mask.full(layout(model)), Mask.parse("041", layout(model))]
    many = evaluate(model, rows, masks, scoring=Scoring(limit=30, bootstrap=0))
    assert [each.n for each in many] == [30, 30]


def test_rows_of_numbers_and_of_language(tokenizer: Any, make_task: Any) -> None:
    numbers = [row | {"labels": float(row["labels"])} for row in labelled(make_task(), tokenizer)]
    found = evaluate(tiny(tokenizer, num_labels=1), numbers, scoring=PLAIN)
    want = evaluate(
        tiny(tokenizer, num_labels=1), make_task("regression"), tokenizer=tokenizer, scoring=PLAIN
    )
    assert found.scores == want.scores
    gpt = build("gpt2", vocab_size=len(tokenizer))
    texts = ["the cat sees the dog", "a small king", "the queen with a young baker"]
    said = evaluate(gpt, texts, tokenizer=tokenizer, scoring=PLAIN)
    assert said.scores[0].metric == "perplexity"
    padded = tokenizer(texts, padding=True, return_tensors="pt")
    batch = {**padded, "labels": padded["input_ids"]}
    again = evaluate(gpt, [batch], scoring=PLAIN)
    assert again.score == pytest.approx(said.score)
    assert again.predictions["tokens"].tolist() == said.predictions["tokens"].tolist()
    masked = build("distilbert", vocab_size=len(tokenizer))
    assert evaluate(masked, [batch], scoring=PLAIN).scores[0].metric == "perplexity"


def test_rows_that_cannot_be_scored_are_told_in_a_sentence(
    model: Any, tokenizer: Any, task: Task
) -> None:
    rows = labelled(task, tokenizer)
    bare = [{"input_ids": row["input_ids"]} for row in rows]
    cases: list[tuple[Any, Any, str]] = [
        (model, bare, "Rows to score have labels"),
        (model, [row | {"labels": 7} for row in rows], "label 7, and the model's 2 classes"),
        (model, [row | {"labels": -1} for row in rows], "label -1, and the model's 2 classes"),
        (model, [row | {"labels": "cat"} for row in rows], "own numbers, not names like 'cat'"),
        (model, [row | {"labels": 0.5} for row in rows], "numbers of the model's 2 classes"),
        (model, [row | {"labels": row["input_ids"]} for row in rows], "one label a row"),
        (model, [{"pixel_values": torch.zeros(1, 3, 4, 4)}], "have tokens"),
        (model, 5, "not a int"),
        (build("marian"), [row | {"labels": [5, 6]} for row in bare], "a translation task"),
        (model, "sst3", "sst2"),
    ]
    for asked, data, want in cases:
        with pytest.raises(UsageError, match=want):
            evaluate(asked, data, tokenizer=tokenizer, scoring=PLAIN)
    with pytest.raises(UsageError, match="rows have no 'test'"):
        evaluate(model, rows, scoring=Scoring(split="test"))
