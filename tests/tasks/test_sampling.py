from __future__ import annotations

from typing import Any

import pytest

from headcount.base.errors import UsageError
from headcount.tasks import Examples, Task
from headcount.tasks.sampling import rows_of

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
    task = lines("masked-lm", WORDS * 20)
    for seed in range(3):
        examples, rows = rows_of(task, tokenizer, "dev", limit=20, seed=seed)
        assert len(rows) == len(examples) == 20
        assert all(examples.texts[0])
    with pytest.raises(UsageError, match="No row has a token to predict"):
        rows_of(lines("masked-lm", ["", ""]), tokenizer, "dev")


def test_the_same_seed_takes_the_same_rows(tokenizer: Any) -> None:
    task = lines("masked-lm", [f"the {word} sleeps ." for word in ("cat", "dog", "king")] * 30)
    one, two, other = (
        rows_of(task, tokenizer, "dev", limit=9, seed=seed)[1].columns["input_ids"]
        for seed in (1, 1, 2)
    )
    assert one == two
    assert one != other


def test_of_a_packed_text_blocks_are_counted_not_lines(tokenizer: Any) -> None:
    task = lines("causal-lm", ["the cat chases the dog ."] * 4000, packed=True)
    _, rows = rows_of(task, tokenizer, "dev", limit=3, max_length=16)
    assert [len(row) for row in rows.columns["input_ids"]] == [16, 16, 16]
