"""Data that are in Python already: what they become, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pandas as pd
import pytest
import torch
import transformers

import headcount as hc
from headcount.base.errors import UsageError
from headcount.tasks import Task, open_task
from headcount.tasks.encoding import examples_fingerprint
from headcount.tasks.kinds import TASK_KINDS, task_kind
from tasks.media import write_images

ROWS = [{"text": f"the cat sees {number}", "alike": number % 3 / 2, "y": ["no", "yes"][number % 2],
         "other": f"a dog {number}", "right": number % 2,
         "tokens": ["a", f"b{number}"], "tags": ["O", "B-x"]}
        for number in range(12)]  # fmt: skip
KINDS: dict[str, dict[str, Any]] = {
    "classification": {"columns": ("text", "other"), "label": "y"},
    "regression": {"columns": "text", "label": "alike"},
    "similarity": {"columns": ("text", "other"), "label": "alike"},
    "translation": {"columns": ("text", "other")},
    "embedding": {"columns": "text"},
    "masked-lm": {"columns": "text"},
    "causal-lm": {"columns": "text"},
    "token-classification": {},
    "multiple-choice": {"columns": ("text", "other", "y"), "label": "right"},
}


def same(first: Task, second: Task) -> None:
    assert (first.splits, first.labels, first.metrics) == (
        second.splits, second.labels, second.metrics,
    )  # fmt: skip
    for split in first.splits:
        rows = first.load(split), second.load(split)
        assert examples_fingerprint(rows[0]) == examples_fingerprint(rows[1])


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_what_the_lines_of_their_file_are(kind: str, tmp_path: Path) -> None:
    lines = "".join(json.dumps(row) + "\n" for row in ROWS)
    (tmp_path / "rows.jsonl").write_text(lines)
    same(
        hc.task(ROWS, kind=kind, **KINDS[kind]),
        open_task(kind, data=tmp_path / "rows.jsonl", **KINDS[kind]),
    )
    (tmp_path / "train.jsonl").write_text(lines)
    (tmp_path / "validation.jsonl").write_text(lines)
    (tmp_path / "rows.jsonl").unlink()
    both = hc.task({"train": ROWS, "validation": iter(ROWS)}, kind=kind, **KINDS[kind])
    same(both, open_task(kind, data=tmp_path, **KINDS[kind]))
    assert both.splits == ("train", "dev")


def test_images_are_named_by_their_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_images(tmp_path, train=2, dev=1)
    monkeypatch.chdir(tmp_path)
    splits = {
        split: [
            {"path": path.relative_to(tmp_path), "class": path.parent.name}
            for path in sorted((tmp_path / split).glob("*/*.png"))
        ]
        for split in ("train", "dev")
    }
    task = hc.task(splits, kind="image-classification", columns="path", label="class")
    same(task, open_task("image-classification", data=tmp_path))
    files = task.load("dev").files
    assert files is not None
    assert all(path.is_absolute() and path.is_file() for path in files)
    with pytest.raises(UsageError, match="Rows of image-classification name their files"):
        hc.task(splits, kind="image-classification", label="class")
    splits["dev"][0]["path"] = object()  # type: ignore[typeddict-item]
    with pytest.raises(UsageError, match="Row 1 of 'dev' has something that is no text"):
        hc.task(splits, kind="image-classification", columns="path", label="class")


def test_every_kind_takes_rows_or_says_what_it_reads() -> None:
    refused = {entry.name for entry in TASK_KINDS if not task_kind(entry.name).rows_of_tables}
    for name in refused:
        with pytest.raises(UsageError, match=f"Task '{name}' reads files of another form"):
            hc.task(ROWS, kind=name)
    assert "retrieval" in refused


def test_data_sets_and_data_frames() -> None:
    options: dict[str, Any] = {"kind": "classification", "columns": "text", "label": "y"}
    wanted = hc.task(ROWS, **options)
    same(hc.task(pd.DataFrame(ROWS), **options), wanted)
    features = datasets.Features(
        text=datasets.Value("string"), y=datasets.ClassLabel(names=["no", "yes"])
    )
    rows = [{"text": row["text"], "y": number % 2} for number, row in enumerate(ROWS)]
    data = datasets.Dataset.from_list(rows, features=features)
    same(hc.task(data, **options), wanted)
    both = hc.task(datasets.DatasetDict(train=data, test=data), **options)
    assert both.splits == ("train", "dev")
    assert "'test.jsonl' is used as dev" in both.notes[0]
    unlabelled = datasets.Dataset.from_list([{"text": "x", "y": -1}], features=features)
    with pytest.raises(UsageError, match="Row 1 of 'rows' has no label: 'y' is None"):
        hc.task(unlabelled, **options)
    tags = datasets.Sequence(datasets.ClassLabel(names=["O", "B-x"]))
    features = datasets.Features(tokens=datasets.Sequence(datasets.Value("string")), tags=tags)
    tagged = [{"tokens": row["tokens"], "tags": [0, 1]} for row in ROWS]
    same(
        hc.task(datasets.Dataset.from_list(tagged, features=features), kind="token-classification"),
        hc.task(ROWS, kind="token-classification"),
    )


def test_texts_alone_are_rows_of_one_column() -> None:
    texts = [str(row["text"]) for row in ROWS]
    same(hc.task(texts, kind="embedding"), hc.task(ROWS, kind="embedding", columns="text"))


def test_labels_that_are_numbers_keep_their_order() -> None:
    rows = [{"text": f"x{number}", "y": np.int64(number % 11)} for number in range(22)]
    task = hc.task(rows, kind="classification", columns="text", label="y")
    assert task.labels == tuple(map(str, range(11)))
    labels = task.load("all").labels
    assert labels is not None
    assert labels.tolist() == [number % 11 for number in range(22)]


def test_metrics_are_chosen_and_ordered(tmp_path: Path) -> None:
    options: dict[str, Any] = {"kind": "classification", "columns": "text", "label": "y"}
    assert hc.task(ROWS, **options).metrics == ("accuracy", "f1", "matthews")
    assert hc.task(ROWS, metrics=("f1", "accuracy"), **options).metrics == ("f1", "accuracy")
    assert hc.task(ROWS, metrics="matthews", **options).metric == "matthews"
    says = "Task 'classification' has no metric 'f2'. Did you mean 'f1'. It has: accuracy, f1"
    with pytest.raises(UsageError, match=says):
        hc.task(ROWS, metrics="f2", **options)


def test_paths_are_opened_again_by_name(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("text,y\n" + "".join(f"{row['text']},{row['y']}\n" for row in ROWS))
    options: dict[str, Any] = {"kind": "classification", "columns": "text", "label": "y"}
    task = hc.task(path, **options)
    assert task.source is not None
    assert task.source.data == path
    same(task, hc.task(ROWS, **options))
    same(
        hc.task({"train": path, "validation": str(path)}, **options),
        open_task("classification", train=path, dev=path, columns="text", label="y"),
    )
    with pytest.raises(UsageError, match="Some splits are paths and some are rows"):
        hc.task({"train": path, "dev": ROWS}, **options)
    assert hc.task(kind="pocket-paraphrase", size=40).kind == "classification"


def changed(**row: object) -> list[dict[str, object]]:
    return [*ROWS, {**ROWS[0], **row}]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda o: hc.task(ROWS, **o | {"columns": "txt"}),
         "The rows of 'rows' have no column 'txt'. Did you mean 'text'\\? They have: text, alike"),
        (lambda o: hc.task(ROWS, **o | {"label": "z"}), "have no column 'z'"),
        (lambda o: hc.task(changed(y=None), **o), "Row 13 of 'rows' has no label: 'y' is None"),
        (lambda o: hc.task(changed(y=float("nan")), **o), "Row 13 of 'rows' has no label"),
        (lambda o: hc.task(changed(text=None), **o), "Row 13 of 'rows' has no text: 'text' is"),
        (lambda o: hc.task(changed(y=""), **o), "'rows' has no label in row 13: 'y' is empty"),
        (lambda o: hc.task(changed(y=1), **o),
         r"Labels are of one kind, and 'y' has texts \('no'\) and numbers \(1\)"),
        (lambda o: hc.task({"train": ROWS, "dev": [{**ROWS[0], "y": True}]}, **o),
         "'y' has texts .* and true or false"),
        (lambda o: hc.task(ROWS, **o | {"label": "alike"}),
         "labels in 'alike' are numbers such as 0.5, which are no classes.* regression"),
        (lambda o: hc.task(ROWS, **o | {"kind": "regression"}), "'rows' has labels that are not a"),
        (lambda o: hc.task([], **o), "There is not a single row in 'rows'"),
        (lambda o: hc.task({}, **o), "There is no data: not a single split"),
        (lambda o: hc.task({"train": []}, **o), "There is not a single row in 'train'"),
        (lambda o: hc.task({"trian": ROWS}, **o), "'trian' is no split. Did you mean 'train'"),
        (lambda o: hc.task({"text": ["a"], "y": ["b"]}, **o), "'text' is no split"),
        (lambda o: hc.task([*ROWS, "a"], **o), "Rows are dicts, and row 13 of 'rows' is 'a'"),
        (lambda o: hc.task(["a", 1], kind="embedding"), "Rows are texts, and row 2 of 'rows' is 1"),
        (lambda o: hc.task(5, **o), "'rows' is a list of dicts, .* not a int"),
        (lambda o: hc.task(np.zeros(3), **o), "'rows' is a list of dicts, .* not a ndarray"),
        (lambda o: hc.task(ROWS, **o | {"kind": "clasification"}), "Did you mean 'classification'"),
        (lambda o: hc.task(ROWS, **o | {"kind": "mrpc"}), "The task 'mrpc' reads files of its own"),
        (lambda o: hc.task([{"words": "a"}], kind="token-classification"),
         "'rows' line 1 is no JSON object with 'tokens' and 'tags'"),
        (lambda o: hc.task(ROWS, kind="embedding", columns=("text", "other")),
         "Task 'embedding' has texts of one column"),
    ],
)  # fmt: skip
def test_bad_data_are_one_sentence(call: Callable[[dict[str, Any]], object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        call({"kind": "classification", "columns": "text", "label": "y"})


def test_rows_that_are_split_are_told_as_rows(caplog: pytest.LogCaptureFixture) -> None:
    """They are no file of that name, and the files that they are read by have names by chance."""
    for data in (ROWS, {"dev": ROWS}):
        caplog.clear()
        task = hc.task(data, kind="classification", columns="text", label="y")
        (said,) = [record.getMessage() for record in caplog.records]
        assert said == str(task.parts)
        assert said.startswith(
            "The rows have no train and dev of their own and were split (seed 0)"
        )
        assert "8 are for selection and training (split train), 4 are scored" in said


def test_rows_are_named_by_their_content() -> None:
    def name(rows: object) -> str:
        task = hc.task(rows, kind="embedding", columns="text")  # type: ignore[arg-type]
        assert task.source is not None
        return task.source.in_memory

    assert name(ROWS).startswith("12 of rows, ")
    assert name(ROWS) == name(pd.DataFrame(ROWS)) != name(ROWS[::-1])
    assert name(ROWS) != name({"train": ROWS, "dev": ROWS})


HEADS = {
    "classification": ("ForSequenceClassification", {"id2label": {0: "yes", 1: "no"}}),
    "regression": ("ForSequenceClassification", {"num_labels": 1}),
    "masked-lm": ("ForMaskedLM", {}),
    "token-classification": ("ForTokenClassification", {"id2label": {0: "B-x", 1: "O"}}),
    "similarity": ("Model", {}),
    "causal-lm": ("LMHeadModel", {"is_decoder": True}),
    "multiple-choice": ("LMHeadModel", {"is_decoder": True}),
}


@pytest.mark.parametrize("kind", HEADS)
def test_heads_that_are_masked_or_removed_score_the_same(kind: str, tokenizer: Any) -> None:
    name, more = HEADS[kind]
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=16, max_position_embeddings=32, pad_token_id=0, **more,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = getattr(transformers, f"Bert{name}")(config).eval()
        for weight in model.parameters():
            if weight.ndim == 2:
                torch.nn.init.normal_(weight, std=0.4)
    words = ["the", "cat", "sees", "a", "dog", "near", "an", "old", "king"]
    rng = np.random.default_rng(0)
    rows = [
        {**row, "text": " ".join(rng.choice(words, 3 + number % 4)), "other": words[number % 9]}
        for number, row in enumerate(ROWS)
    ]
    task = hc.task({"train": rows, "dev": rows}, kind=kind, **KINDS[kind])
    mask, scoring = hc.select(model, "random", 0.5), hc.Scoring(bootstrap=0)
    small = hc.remove(model, mask)
    full, masked, removed = (
        hc.evaluate(model, task, scoring=scoring, tokenizer=tokenizer),
        hc.evaluate(model, task, mask, scoring=scoring, tokenizer=tokenizer),
        hc.evaluate(small, task, scoring=scoring, tokenizer=tokenizer),
    )

    def numbers(evaluation: Any) -> np.ndarray:
        outcome = evaluation.outcome
        if isinstance(outcome.predictions, list):  # sentences of tags
            return np.array([hash(text) for text in outcome.predictions])
        return np.asarray(evaluation.predictions.get("logits", outcome.predictions), dtype=float)

    np.testing.assert_allclose(numbers(masked), numbers(removed), rtol=1e-4, atol=1e-5)
    assert not np.allclose(numbers(masked), numbers(full), rtol=1e-2)
