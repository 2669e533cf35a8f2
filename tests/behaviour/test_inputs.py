from __future__ import annotations

from pathlib import Path

import headcount as hc
from headcount.behaviour.inputs import role_inputs, said_twice
from headcount.tasks import open_task
from headcount.tasks.encoding import EncodedRows
from headcount.tasks.input_options import InputOptions
from headcount.tasks.loading import load_tokenizer


def test_a_row_is_said_twice_between_the_same_special_tokens() -> None:
    tokenizer = load_tokenizer("pocket")
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    rows = EncodedRows({"input_ids": [[cls, 11, 12, 13, 14, 15, sep], [cls, 11, sep], [cls, sep]]})
    assert said_twice(rows, tokenizer).columns["input_ids"] == [
        [cls, 11, 12, 11, 12, sep],
        [cls, 11, 11, sep],
        [cls, sep],
    ]


def test_texts_stay_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("the lawyer sees the judge .\n", encoding="utf-8")
    model, tokenizer = hc.load("pocket"), load_tokenizer("pocket")
    rows, name = role_inputs(model, tokenizer, InputOptions(rows=file))
    assert (len(rows), name) == (1, "texts.txt")
    assert rows.columns["input_ids"] == [tokenizer("the lawyer sees the judge .")["input_ids"]]
    task = open_task("pocket-sentiment")
    assert role_inputs(model, tokenizer, InputOptions(samples=2), task)[1] == "pocket-sentiment"
    rows, name = role_inputs(model, tokenizer, InputOptions(random=4, max_length=12))
    assert name == "random tokens, each row twice"
    assert max(rows.lengths) <= 12
