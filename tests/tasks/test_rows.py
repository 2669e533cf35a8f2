from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from headcount.base.errors import UsageError
from headcount.models.shipped import locate
from headcount.tasks import Examples, Task, open_task
from headcount.tasks.encoding import EncodedRows
from headcount.tasks.rows import labelled_rows, rows_of
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
