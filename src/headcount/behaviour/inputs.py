"""What roles are seen on where there is no text: random tokens, every row said twice.

In the second half every token has come before, and what came behind it then comes again: a head
that looks there does induction (prefix matching, as in In-context Learning and Induction Heads,
2022).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from transformers import PreTrainedModel

from headcount.tasks.encoding import EncodedRows
from headcount.tasks.input_options import InputOptions
from headcount.tasks.inputs import read_inputs
from headcount.tasks.loading import tokenizer_of
from headcount.tasks.task import Task


def role_inputs(
    model: PreTrainedModel, tokenizer: Any, input_options: InputOptions, task: Task | None = None
) -> tuple[EncodedRows, str]:
    """(rows, what they are), as `InputOptions` asks for them; no row of a task that is scored."""
    tokenizer = tokenizer if tokenizer is not None else tokenizer_of(model)
    rows, name = read_inputs(model, tokenizer, input_options, task, decides=True)
    if input_options.rows is None and (task is None or input_options.random is not None):
        return said_twice(rows, tokenizer), f"{name}, each row twice"
    return rows, name


def said_twice(rows: EncodedRows, tokenizer: Any) -> EncodedRows:
    """The first half of every row's text, and once more, between the same special tokens."""
    special = frozenset(tokenizer.all_special_ids)

    def twice(row: list[int]) -> list[int]:
        text = [token for token in row if token not in special]
        if not text:
            return row
        start = next(place for place, token in enumerate(row) if token not in special)
        half = text[: max(1, len(text) // 2)]
        return [*row[:start], *half, *half, *row[start + len(text) :]]

    columns = {"input_ids": [twice(row) for row in rows.columns["input_ids"]]}
    return replace(rows, columns=columns)
