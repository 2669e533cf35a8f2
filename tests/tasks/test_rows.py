from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from headcount.base.errors import UsageError
from headcount.models.shipped import locate
from headcount.tasks import open_task
from headcount.tasks.encoding import EncodedRows
from headcount.tasks.rows import labelled_rows
from headcount.tasks.sampling import rows_of
from models.zoo import build


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
    _, scored = rows_of(task, tokenizer, max_length=8)
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
    with pytest.raises(UsageError, match="no rows to decide on but those that are scored"):
        labelled_rows(model, task, tokenizer)
    assert len(labelled_rows(model, task, tokenizer, split="dev")) == 4
