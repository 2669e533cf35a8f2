"""Whatever people have, wherever rows are taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset, DatasetDict
from torch.utils.data import DataLoader
from transformers import AutoTokenizer

from headcount.base.errors import UsageError
from headcount.changes.measure import transfer
from headcount.heads import Mask
from headcount.likeness.measure import redundancy
from headcount.models.find import layout
from headcount.models.remove import remove
from headcount.models.shipped import locate
from headcount.pruning.select import select
from headcount.repair.recovery import recover
from headcount.sensitivity.gradients import importance
from headcount.tasks import open_task
from headcount.tasks.as_rows import as_rows
from headcount.tasks.encoding import EncodedRows
from training.conftest import tiny

TEXTS = ["the dog sees the cat", "a lawyer", "the old judge hears the young lawyer", "dogs run"] * 4
LABELS = [0, 1, 1, 0] * 4


@pytest.fixture(scope="module")
def words() -> Any:
    return AutoTokenizer.from_pretrained(locate("pocket-bert"))


@pytest.fixture(scope="module")
def model(words) -> Any:
    return tiny(words).eval()


def forms(words: Any) -> dict[str, Any]:
    """The same rows as a list of texts and in every other form."""
    rows = [{**words(text), "labels": label} for text, label in zip(TEXTS, LABELS, strict=True)]
    padded = words(TEXTS, padding=True, return_tensors="pt")
    batches = [
        {name: value[at : at + 8] for name, value in padded.items()}
        | {"labels": torch.tensor(LABELS[at : at + 8])}
        for at in (0, 8)
    ]
    return {
        "rows": rows,
        "columns": {**words(TEXTS), "labels": LABELS},
        "padded rows": [
            {**words(text, padding="max_length", max_length=20), "labels": label}
            for text, label in zip(TEXTS, LABELS, strict=True)
        ],
        "dataset": Dataset.from_dict({"text": TEXTS, "label": LABELS}),
        "tokenised dataset": Dataset.from_list(rows),
        "batches": batches,
        "loader": DataLoader(batches, batch_size=None),
        "one batch": {**padded, "labels": torch.tensor(LABELS)},
    }


FORMS = ("rows", "columns", "padded rows", "dataset", "tokenised dataset", "batches", "loader",
         "one batch")  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_importance(model, words, form):
    expected = importance(model, forms(words)["rows"], tokenizer=words)
    found = importance(model, forms(words)[form], tokenizer=words)
    assert found.n == expected.n == 16
    assert found.values == pytest.approx(expected.values, rel=1e-4, abs=1e-8)


@pytest.mark.parametrize("form", ["texts", *FORMS])
def test_every_function_takes_every_form(model, words, form):
    data = {"texts": TEXTS, **forms(words)}[form]
    mask = Mask.parse("11", layout(model)) if len(layout(model).stacks[0].heads) == 2 else None
    mask = mask or select(model, "random", 0.5)
    assert redundancy(model, data, "cos", tokenizer=words).count == 16
    small = recover(remove(model, mask), model, data, tokenizer=words)
    assert len(layout(small)) == len(mask)
    assert len(select(model, "surgeon", 0.5, data=data, tokenizer=words)) == len(mask)
    assert len(select(model, "cluster", 0.5, inputs=data, tokenizer=words)) == len(mask)
    drift = transfer(model, model, data, tokenizer=words).drift
    assert max(drift.attention.values) == pytest.approx(0.0, abs=1e-6)


def test_a_task_or_its_name(model, words):
    task = open_task("pocket-sentiment", size=40)
    by_task = as_rows(model, task, tokenizer=words, limit=10)
    assert isinstance(by_task, EncodedRows)
    assert len(by_task) == 10
    assert importance(model, task, tokenizer=words).n == 40
    looked = as_rows(model, "pocket-corpus", tokenizer=words, labels=False, limit=5)
    assert isinstance(looked, EncodedRows)
    assert words.mask_token_id not in np.concatenate(looked.columns["input_ids"])


def test_rows_of_tokens_alone(model, words):
    ids = [words(text)["input_ids"] for text in TEXTS]
    found = as_rows(model, ids, tokenizer=words)
    assert isinstance(found, EncodedRows)
    assert found.columns["input_ids"] == ids
    assert found.labels is None


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (3, "not a int"),
        (None, "not a NoneType"),
        (torch.zeros(2, 3), "not a Tensor"),
        ([], "There is no data"),
        ([object()], "begins with a object"),
        ([{"input_ids": [1, 2]}, {"other": 1}], "but one is"),
        ({"a": ["x"], "b": ["y"], "c": ["z"]}, "3 columns of texts"),
        (DatasetDict(train=Dataset.from_dict({"text": ["a"]})), "pass one of them"),
        (["a text", 3], "but one is 3"),
        ("no-such-task", "There is no task 'no-such-task'"),
    ],
)
def test_anything_else_gets_one_sentence(model, words, data, told):
    with pytest.raises(UsageError, match=told):
        as_rows(model, data, tokenizer=words)


def test_texts_need_a_tokenizer(model):
    with pytest.raises(UsageError, match="tokenizer"):
        as_rows(model, TEXTS)


def test_rows_longer_than_the_models_positions(words: Any) -> None:
    model = tiny(words)
    model.config.max_position_embeddings = 6
    rows = as_rows(model, TEXTS, tokenizer=words)
    assert isinstance(rows, EncodedRows)
    assert max(rows.lengths) == 6
    ids = [[1] * 7, [2] * 3]
    for long in (ids, {"input_ids": ids}, [{"input_ids": torch.ones(2, 7).long()}]):
        with pytest.raises(UsageError, match=r"A row has 7 tokens, and .* takes 6: truncate"):
            as_rows(model, long)
    assert len(list(as_rows(model, [{"input_ids": torch.ones(2, 6).long()}]))) == 1
