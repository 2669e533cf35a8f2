from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import AutoTokenizer

from headcount.base.errors import UsageError
from headcount.models.shipped import locate
from headcount.tasks import Examples, Task, open_task
from headcount.tasks.encoding import EncodedRows
from headcount.tasks.rows import first_tokens, labelled_rows, rows_of, rows_of_tokens
from models.zoo import build
from training.conftest import tiny


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return AutoTokenizer.from_pretrained(locate("pocket-bert"))


@pytest.mark.parametrize(("family", "name"), [("gpt2", "causal-lm"), ("distilbert", "masked-lm")])
def test_rows_of_one_file_that_decide_are_not_those_that_are_scored(
    family: str, name: str, tokenizer: Any, tmp_path: Path
) -> None:
    words = sorted(word for word in tokenizer.get_vocab() if word.isalpha())
    lines = [f"{first} {second}" for first in words[:9] for second in words[:9]]
    (tmp_path / "text.txt").write_text("\n".join(lines))
    task = open_task(name, data=tmp_path / "text.txt")
    model = build(family, vocab_size=len(tokenizer))
    decide = labelled_rows(model, task, tokenizer, max_length=8)
    _, scored = rows_of(model, task, tokenizer, max_length=8)
    assert len(decide) > len(scored) > 5
    first, second = (unmasked(rows) for rows in (decide, scored))
    assert not first & second
    assert not set(task.load("train").texts[0]) & set(task.load("dev").texts[0])


def unmasked(rows: EncodedRows) -> set[tuple[int, ...]]:
    """The rows' tokens before any was hidden."""
    assert isinstance(rows.labels, list)
    pairs = zip(rows.columns["input_ids"], rows.labels, strict=True)
    return {
        tuple(label if label >= 0 else token for token, label in zip(*pair, strict=True))
        for pair in pairs
    }


def test_a_task_without_other_rows_is_refused(tokenizer: Any, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("the cat\n" * 4)
    task = open_task("masked-lm", data=tmp_path / "text.txt")
    model = build("distilbert", vocab_size=len(tokenizer))
    with pytest.raises(UsageError, match="no rows for calibration besides those that are scored"):
        labelled_rows(model, task, tokenizer)
    assert len(labelled_rows(model, task, tokenizer, split="dev")) == 4


WORDS = ["the cat sleeps .", "", "a dog runs .", "", "the big king sings ."]


def lines(kind: str, texts: list[str], *, packed: bool = False) -> Task:
    return Task(
        name="lines",
        kind=kind,  # type: ignore[arg-type]
        texts=("text",),
        metrics=("perplexity",),
        loader=lambda _: Examples((texts,), None),
        packed=packed,
    )


def test_as_many_rows_as_asked_though_some_have_nothing_to_ask(tokenizer: Any) -> None:
    task, model = lines("masked-lm", WORDS * 20), tiny(tokenizer)
    for seed in range(3):
        examples, rows = rows_of(model, task, tokenizer, "dev", limit=20, seed=seed)
        assert len(rows) == len(examples) == 20
        assert all(examples.texts[0])
    with pytest.raises(UsageError, match="No row has a token to predict"):
        rows_of(model, lines("masked-lm", ["", ""]), tokenizer, "dev")


def test_the_same_seed_takes_the_same_rows(tokenizer: Any) -> None:
    task = lines("masked-lm", [f"the {word} sleeps ." for word in ("cat", "dog", "king")] * 30)
    model = tiny(tokenizer)
    one, two, other = (
        rows_of(model, task, tokenizer, "dev", limit=9, seed=seed)[1].columns["input_ids"]
        for seed in (1, 1, 2)
    )
    assert one == two
    assert one != other


def test_of_a_packed_text_blocks_are_counted_not_lines(tokenizer: Any) -> None:
    task = lines("causal-lm", ["the cat chases the dog ."] * 4000, packed=True)
    _, rows = rows_of(tiny(tokenizer), task, tokenizer, "dev", limit=3, max_length=16)
    assert [len(row) for row in rows.columns["input_ids"]] == [16, 16, 16]


@pytest.fixture(scope="module")
def text_file(tmp_path_factory: pytest.TempPathFactory, tokenizer: Any) -> Path:
    """A text file of 120 lines of one to nine words."""
    words = sorted(word for word in tokenizer.get_vocab() if word.isalpha())
    file = tmp_path_factory.mktemp("texts") / "text.txt"
    made = [" ".join(words[n : n + 1 + n % 9]) for n in range(120)]
    file.write_text("\n".join(dict.fromkeys(made)))
    return file


@pytest.mark.parametrize("name", ["causal-lm", "masked-lm", "embedding"])
def test_rows_are_counted_in_tokens(name: str, tokenizer: Any, text_file: Path) -> None:
    task = open_task(name, data=text_file)
    model = build("gpt2" if name == "causal-lm" else "distilbert", vocab_size=len(tokenizer))
    how: dict[str, Any] = {"max_length": 8}
    every = labelled_rows(model, task, tokenizer, **how)
    whole = int(every.lengths.sum())
    for tokens in (1, 50, whole // 2):
        rows = rows_of_tokens(model, task, tokenizer, tokens, **how)
        # none could be left out, and each is one of the split's
        assert tokens <= rows.lengths.sum() < tokens + 8
        assert {tuple(row) for row in rows.columns["input_ids"]} <= {
            tuple(row) for row in labelled_rows(model, task, tokenizer, **how).columns["input_ids"]
        } or name == "masked-lm"  # where others are hidden for every sample
    other = rows_of_tokens(model, task, tokenizer, 50, seed=1, **how)
    assert other.columns != rows_of_tokens(model, task, tokenizer, 50, **how).columns
    assert rows_of_tokens(model, task, tokenizer, 10 * whole, **how).lengths.sum() == whole


def test_tokens_of_an_example_are_those_of_all_its_rows() -> None:
    columns = {"input_ids": [[1] * size for size in (3, 5, 2, 7, 4)]}
    rows = EncodedRows(columns, examples=np.array([0, 0, 1, 1, 2]))
    assert rows.sizes.tolist() == [8, 9, 4]
    assert first_tokens(rows, 9).examples.tolist() == [0, 0, 1, 1]
    assert first_tokens(rows, 8).examples.tolist() == [0, 0]
    chosen = first_tokens(rows, 5, np.array([2, 1, 0]))
    assert chosen.columns["input_ids"] == columns["input_ids"][2:]
    assert len(first_tokens(rows, 999)) == 5
