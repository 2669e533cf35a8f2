"""Data in any form, coerced to rows of tokens or to batches.

Wherever headcount reads data it takes a list of texts, of pairs of texts or of conversations (with
a tokenizer), a list of tokenised rows, a `datasets.Dataset`, a DataLoader or other batches of
tensors, a task or its name. Anything else gets one sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.base.errors import UsageError
from headcount.base.names import did_you_mean
from headcount.models.find import unwrap
from headcount.tasks.catalog import TASKS, open_task
from headcount.tasks.conversations import MESSAGES, is_conversation
from headcount.tasks.encoding import EncodedRows, encode_texts, pad_token
from headcount.tasks.loading import match, processor_of, room
from headcount.tasks.rows import labelled_rows, rows_of
from headcount.tasks.task import Limit, Task

TAKEN = (
    "a list of texts, a list of tokenised rows, a datasets.Dataset, a DataLoader or batches of "
    "tensors, or a task or its name"
)
LABELS = ("labels", "label")
Data = EncodedRows | Task | str | Iterable[object] | Mapping[str, object]
"""What `as_rows` takes; None as a tokenizer where the data are tokens already."""
Tokenizer = PreTrainedTokenizerBase | None
Rows = EncodedRows | Iterable[Mapping[str, Any]]
"""What it gives: rows of tokens, or batches as they came."""


def as_rows(
    model: Any,
    data: Data,
    *,
    tokenizer: PreTrainedTokenizerBase | None = None,
    labels: bool = True,
    split: str | None = None,
    limit: Limit = None,
    seed: int = 0,
    max_length: int = 128,
) -> Rows:
    """Data of any kind as rows of tokens, or as the batches that were given.

    `split`, `limit` and `seed` choose the rows of a task: with `labels` calibration rows of its
    train split; without, rows of its evaluation split with nothing masked. Texts are truncated to
    `max_length` tokens, or as many as the model has positions; tokens that do not fit are refused.
    """
    if isinstance(data, EncodedRows):
        return data
    if isinstance(data, Task) or (isinstance(data, str) and data):
        if isinstance(data, str) and data not in TASKS:
            raise UsageError(
                f"There is no task '{data}'.{did_you_mean(data, [entry.name for entry in TASKS])} "
                f"Data are {TAKEN}."
            )
        task = open_task(data)
        tokenizer = tokenizer if tokenizer is not None else processor_of(model)
        if labels:
            return labelled_rows(
                model, task, tokenizer, split=split, limit=limit, seed=seed, max_length=max_length
            )
        match(model, tokenizer)
        return rows_of(
            model, task, tokenizer, split, limit=limit, seed=seed, max_length=max_length,
            masked=False,
        )[1]  # fmt: skip
    if hasattr(data, "column_names") and hasattr(data, "__getitem__"):
        data = _columns(data)
    bare = unwrap(model)
    if isinstance(bare, PreTrainedModel):
        max_length = room(bare, max_length)
    if isinstance(data, Mapping):
        rows = _of_columns(data, tokenizer, max_length)
    elif not isinstance(data, Iterable) or isinstance(data, Tensor | np.ndarray | bytes | str):
        raise UsageError(f"Data are {TAKEN}, not a {type(data).__name__}.")
    else:
        rows = _of_items(data, tokenizer, max_length)
    if isinstance(bare, PreTrainedModel):
        _require_fit(bare, rows)
    return rows


def _require_fit(model: PreTrainedModel, rows: Rows) -> None:
    """Refuse tokens that the model has no positions for."""
    if isinstance(rows, EncodedRows):
        longest = max(rows.lengths, default=0)
    elif isinstance(rows, Sequence):
        ids = [batch.get("input_ids") for batch in rows if isinstance(batch, Mapping)]
        longest = max((row.shape[-1] for row in ids if isinstance(row, Tensor)), default=0)
    else:
        return  # batches that are made as they are read
    if (positions := room(model, longest)) < longest:
        raise UsageError(
            f"A row has {longest} tokens, and {type(model).__name__} takes {positions}: truncate "
            "it, or pass texts and the tokenizer."
        )


def are_rows(data: Data) -> bool:
    """Whether `as_rows` would return it unchanged: rows, or batches of tensors."""
    if isinstance(data, EncodedRows):
        return True
    if isinstance(data, Mapping):
        return any(isinstance(value, Tensor) for value in data.values())
    if isinstance(data, Sequence):
        first = data[0] if len(data) else None
        return isinstance(first, Mapping) and not (_is_row(first) or is_conversation(first))
    return not hasattr(data, "column_names")  # a DataLoader


def _of_items(data: Iterable[Any], tokenizer: Tokenizer, max_length: int) -> Rows:
    """A list or stream: what its first item is decides."""
    if not isinstance(data, Sequence):
        if not isinstance(data, Iterator):
            return data  # a DataLoader: it can be gone through again
        data = list(data)
    if not len(data):
        raise UsageError("There is no data: not a single row or batch.")
    first = data[0]
    pair = isinstance(first, tuple | list) and first and isinstance(first[0], str)
    if isinstance(first, str) or pair or is_conversation(first):
        return encode_texts(list(data), tokenizer, max_length=max_length)
    if isinstance(first, Mapping):
        if not _is_row(first):
            return data
        names = list(first)
        if wrong := [row for row in data if not isinstance(row, Mapping) or list(row) != names]:
            raise UsageError(
                f"The rows begin with {', '.join(names)}, but one is {wrong[0]!r:.60}."
            )
        return _encoded({name: [row[name] for row in data] for name in names}, tokenizer)
    if isinstance(first, Sequence) and first and isinstance(first[0], int):
        return _encoded({"input_ids": list(data)}, tokenizer)
    raise UsageError(f"Data are {TAKEN}; this list begins with a {type(first).__name__}.")


def _is_row(item: Mapping[str, object]) -> bool:
    """Whether it is one row of token numbers, not a batch of several."""
    ids = item.get("input_ids")
    if isinstance(ids, Tensor | np.ndarray):
        return ids.ndim == 1
    return isinstance(ids, Sequence) and bool(len(ids)) and isinstance(ids[0], int | np.integer)


def _of_columns(data: Mapping[Any, Any], tokenizer: Tokenizer, max_length: int) -> Rows:
    """What a tokenizer gave for several texts, one batch of tensors, or columns of texts."""
    if not data:
        raise UsageError("There is no data: not a single row or batch.")
    if any(isinstance(value, Tensor) for value in data.values()):
        return [data]
    if "input_ids" in data:
        return _encoded(data, tokenizer)
    if MESSAGES in data:
        return encode_texts(data[MESSAGES], tokenizer, max_length=max_length)
    texts = [column for column in data.values() if len(column) and isinstance(column[0], str)]
    if not 1 <= len(texts) <= 2:
        raise UsageError(
            f"Data with the columns {', '.join(map(str, data))} have {len(texts)} columns of "
            "texts: keep one, or two for pairs."
        )
    rows = list(texts[0]) if len(texts) == 1 else list(zip(*texts, strict=True))
    return replace(encode_texts(rows, tokenizer, max_length=max_length), labels=_labels(data))


def _columns(data: Any) -> dict[str, Any]:
    """The columns of a `datasets.Dataset`, as lists."""
    if isinstance(data, Mapping):
        raise UsageError(
            f"This is a DatasetDict with the splits {', '.join(map(str, data))}: pass one of them."
        )
    return {name: list(data[name]) for name in data.column_names}


def _encoded(columns: Mapping[str, Any], tokenizer: Tokenizer) -> EncodedRows:
    """Tokenised rows: what a tokenizer gives, without padding, with labels where there are some."""
    rows = {
        name: [list(map(int, row)) for row in columns[name]]
        for name in ("input_ids", "token_type_ids")
        if name in columns
    }
    if "attention_mask" in columns:
        mask = columns["attention_mask"]
        rows = {name: _without_padding(column, mask) for name, column in rows.items()}
    if not rows.get("input_ids"):
        raise UsageError("There is no data: not a single row of tokens (input_ids).")
    labels = _labels(columns)
    if isinstance(labels, list) and "attention_mask" in columns:
        labels = _without_padding(labels, columns["attention_mask"])
    padding = {"input_ids": 0, "token_type_ids": 0}
    if tokenizer is not None:
        padding = {"input_ids": pad_token(tokenizer), "token_type_ids": tokenizer.pad_token_type_id}
    left = tokenizer is not None and tokenizer.padding_side == "left"
    return EncodedRows(rows, labels, padding, left)


def _labels(columns: Mapping[str, Any]) -> np.ndarray | list[list[int]] | None:
    """One number a row, or a list of token numbers each; None without labels."""
    given = next((columns[name] for name in LABELS if name in columns), None)
    if given is None or not len(given):
        return None
    if isinstance(given[0], str):
        raise UsageError(
            f"Labels are the model's own numbers, not names like {given[0]!r:.60}: number them as "
            "its config.label2id does."
        )
    if hasattr(given[0], "__len__"):
        return [list(map(int, row)) for row in given]
    return np.asarray(given)


def _without_padding(column: list[list[int]], mask: Sequence[Sequence[int]]) -> list[list[int]]:
    """(row, token) what the attention mask keeps; labels of other tokens (a decoder's) stay."""
    return [
        np.asarray(row)[np.asarray(keep, dtype=bool)].tolist() if len(row) == len(keep) else row
        for row, keep in zip(column, mask, strict=True)
    ]
