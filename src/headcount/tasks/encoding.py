"""Texts to token numbers, and token numbers to padded batches.

    rows = encode(task, task.load("dev"), tokenizer)
    for numbers, batch in rows.batches(tokens=4096): ...

Batches hold rows of like length, longest first, so little of them is padding.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headcount.errors import UsageError
from headcount.models.tokenizers import tokenizing
from headcount.tasks.masking import mask_tokens
from headcount.tasks.task import Examples, Task
from headcount.text import line

IGNORED = -100
"""The label of what does not count: padding, and tokens that were not masked."""


@dataclass(frozen=True, eq=False)
class Encoded:
    """Rows of token numbers, ready to be padded; also a torch Dataset of rows."""

    columns: dict[str, list[list[int]]]
    """What the tokenizer gives for each row: input_ids, and token_type_ids where it has them."""
    labels: np.ndarray | list[list[int]] | None = None
    """(row,) classes or scores, or token labels for each row."""
    padding: dict[str, int] = field(default_factory=dict)
    """What each column is padded with."""
    left: bool = False
    """Padding goes before the tokens instead of behind them."""

    def __len__(self) -> int:
        return len(self.columns["input_ids"])

    def __repr__(self) -> str:
        labels = "" if self.labels is None else ", labels"
        return line(f"{type(self).__name__}({len(self)} rows: {', '.join(self.columns)}{labels})")

    def __getitem__(self, row: int) -> dict[str, Any]:
        item: dict[str, Any] = {name: column[row] for name, column in self.columns.items()}
        if self.labels is not None:
            item["labels"] = self.labels[row]
        return item

    @property
    def lengths(self) -> np.ndarray:
        """(row,) how many tokens each row has."""
        return np.array([len(ids) for ids in self.columns["input_ids"]], dtype=np.int64)

    def take(self, rows: Sequence[int] | np.ndarray) -> Encoded:
        """These rows, in this order."""
        columns = {name: [column[i] for i in rows] for name, column in self.columns.items()}
        labels = self.labels
        if isinstance(labels, np.ndarray):
            labels = labels[np.asarray(rows)]
        elif labels is not None:
            labels = [labels[i] for i in rows]
        return Encoded(columns, labels, self.padding, self.left)

    def collate(self, items: Sequence[dict[str, Any]]) -> dict[str, Tensor]:
        """Padded tensors of these rows, with their attention mask."""
        batch: dict[str, Tensor] = {}
        for name in self.columns:
            batch[name] = self._pad([item[name] for item in items], self.padding.get(name, 0))
        ones = [[1] * len(item["input_ids"]) for item in items]
        batch["attention_mask"] = self._pad(ones, 0)
        if "labels" in items[0]:
            values = [item["labels"] for item in items]
            if isinstance(values[0], list):
                batch["labels"] = self._pad(values, IGNORED)
            else:
                dtype = torch.long if np.issubdtype(type(values[0]), np.integer) else torch.float
                batch["labels"] = torch.tensor(np.asarray(values), dtype=dtype)
        return batch

    def _pad(self, rows: Sequence[Sequence[int]], value: int) -> Tensor:
        width = max(len(row) for row in rows)
        padded = np.full((len(rows), width), value, dtype=np.int64)
        for place, row in enumerate(rows):
            if self.left:
                padded[place, width - len(row) :] = row
            else:
                padded[place, : len(row)] = row
        return torch.from_numpy(padded)

    def batches(
        self, tokens: int = 4096, rows: int = 1024
    ) -> Iterator[tuple[np.ndarray, dict[str, Tensor]]]:
        """(row numbers, padded batch), longest rows first; at most `tokens` with padding."""
        for numbers in plan_batches(self.lengths, tokens, rows):
            yield numbers, self.collate([self[i] for i in numbers])


def rows_fingerprint(rows: Encoded) -> str:
    """How many rows there are, and a short name for exactly these tokens and labels."""
    found = hashlib.blake2b(digest_size=8)
    found.update(json.dumps([list(rows.columns), rows.padding, rows.left]).encode())
    labels = rows.labels if isinstance(rows.labels, list) else []
    for column in (*rows.columns.values(), labels):
        for row in column:
            found.update(len(row).to_bytes(8, "little") + array("q", row).tobytes())
    if isinstance(rows.labels, np.ndarray):
        found.update(f"{rows.labels.dtype}".encode() + rows.labels.tobytes())
    return f"{len(rows)} rows {found.hexdigest()}"


def examples_fingerprint(examples: Examples) -> str:
    """How many rows there are, and a short name for exactly these texts and labels."""
    found = hashlib.blake2b(digest_size=8)
    for column in examples.texts:
        found.update(json.dumps(list(column)).encode())
    if examples.labels is not None:
        found.update(f"{examples.labels.dtype}".encode() + examples.labels.tobytes())
    return f"{len(examples)} rows {found.hexdigest()}"


def plan_batches(lengths: np.ndarray, tokens: int, rows: int = 1024) -> list[np.ndarray]:
    """Row numbers of each batch: rows of like length together, at most `tokens` with padding.

    >>> [batch.tolist() for batch in plan_batches(np.array([2, 9, 3, 9]), tokens=18)]
    [[1, 3], [2, 0]]
    """
    order = np.argsort(-lengths, kind="stable")
    plan: list[np.ndarray] = []
    start = 0
    while start < len(order):
        # the first row of a batch is its longest, so it alone decides how many fit
        count = max(1, min(rows, tokens // max(1, int(lengths[order[start]]))))
        plan.append(order[start : start + count])
        start += count
    return plan


@tokenizing()
def encode(
    task: Task,
    examples: Examples,
    tokenizer: Any,
    *,
    max_length: int = 128,
    seed: int = 0,
    masked: bool = True,
) -> Encoded:
    """The examples as rows of tokens with labels of the task's kind.

    Masked LM: tokens are masked here, always the same for a seed, unless `masked` is false
    (training masks anew in every epoch). Translation: labels are the target's tokens.
    """
    if max_length < 2:
        raise UsageError(f"At least 2 tokens are needed, not {max_length}.")
    limit = min(max_length, tokenizer.model_max_length)
    first, *rest = examples.texts
    if task.kind == "causal-lm" and task.packed:
        blocks = _blocks(first, tokenizer, limit)
        return _encoded({"input_ids": blocks}, [list(block) for block in blocks], tokenizer)
    pair = rest[0] if rest and task.kind != "translation" else None
    columns = _tokenize(tokenizer, first, pair, limit)
    labels: Any = examples.labels
    if task.kind == "causal-lm":
        labels = [list(ids) for ids in columns["input_ids"]]
    elif task.kind == "translation":
        target = tokenizer(text_target=list(rest[0]), truncation=True, max_length=limit)
        labels = target["input_ids"]
    elif task.kind == "masked-lm" and masked:
        drawn = [
            mask_tokens(ids, tokenizer, np.random.default_rng((seed, row)))
            for row, ids in enumerate(columns["input_ids"])
        ]
        columns["input_ids"] = [ids for ids, _ in drawn]
        labels = [wanted for _, wanted in drawn]
    return _encoded(columns, labels, tokenizer)


def encode_texts(texts: list[Any], tokenizer: Any, *, max_length: int = 128) -> Encoded:
    """Texts, or pairs of texts, as rows of tokens."""
    if tokenizer is None:
        raise UsageError("Texts need the model's tokenizer: pass tokenizer=.")
    paired = isinstance(texts[0], tuple | list)
    for text in texts:
        parts = text if paired else (text,)
        fits = isinstance(text, tuple | list) == paired and len(parts) == 1 + paired
        if not fits or not all(isinstance(part, str) for part in parts):
            kind = "pairs of texts" if paired else "texts"
            raise UsageError(f"The inputs begin as {kind}, but one is {text!r:.60}.")
    columns = [list(column) for column in zip(*texts, strict=True)] if paired else [texts]
    names = ("text", "pair")[: len(columns)]
    task = Task(name="texts", kind="classification", texts=names, metrics=(), loader=_no_rows)
    return encode(task, Examples(tuple(columns)), tokenizer, max_length=max_length)


def _no_rows(split: str) -> Examples:
    raise UsageError("These texts have no splits.")


def _tokenize(
    tokenizer: Any, first: Sequence[Any], second: Sequence[Any] | None, limit: int
) -> dict[str, list[list[int]]]:
    """Columns of token numbers; a second text of None makes the row a single one."""

    def call(*texts: list[Any]) -> dict[str, list[list[int]]]:
        out = tokenizer(*texts, truncation=True, max_length=limit, return_attention_mask=False)
        return {name: out[name] for name in out if name in ("input_ids", "token_type_ids")}

    if second is None:
        return call(list(first))
    alone = [row for row, text in enumerate(second) if text is None]
    if not alone:
        return call(list(first), list(second))
    paired = [row for row, text in enumerate(second) if text is not None]
    parts = [(alone, call([first[i] for i in alone]))]
    if paired:
        parts.append((paired, call([first[i] for i in paired], [second[i] for i in paired])))
    merged: dict[str, list[list[int]]] = {name: [[]] * len(first) for name in parts[0][1]}
    for rows, columns in parts:
        for name, column in columns.items():
            for row, value in zip(rows, column, strict=True):
                merged[name][row] = value
    return merged


def _encoded(columns: dict[str, list[list[int]]], labels: Any, tokenizer: Any) -> Encoded:
    padding = {"input_ids": pad_token(tokenizer), "token_type_ids": tokenizer.pad_token_type_id}
    return Encoded(columns, labels, padding, tokenizer.padding_side == "left")


def pad_token(tokenizer: Any) -> int:
    """What to pad with; a tokenizer without a padding token lends its end token."""
    for number in (tokenizer.pad_token_id, tokenizer.eos_token_id, tokenizer.unk_token_id):
        if number is not None:
            return int(number)
    return 0


def _blocks(lines: Sequence[Any], tokenizer: Any, size: int) -> list[list[int]]:
    """All lines as one stream of tokens, an end token between two, cut into equal blocks."""
    ids = tokenizer(list(lines), add_special_tokens=False, verbose=False)["input_ids"]
    end = [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]
    stream = [token for line in ids for token in (*line, *end)]
    blocks = [stream[i : i + size] for i in range(0, len(stream), size)]
    blocks = [block for block in blocks if len(block) > 1]
    if not blocks:
        raise UsageError("The text is too short: at least two tokens are needed.")
    return blocks
