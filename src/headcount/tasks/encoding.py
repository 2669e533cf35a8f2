"""Examples to rows of numbers, and rows to padded batches.

    rows = encode(task, task.load("dev"), tokenizer)
    for numbers, batch in rows.batches(tokens=4096): ...

Batches hold rows of like length, longest first, so little of them is padding.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from headcount.base.digest import digest
from headcount.base.errors import UnsupportedError, UsageError
from headcount.base.text import line
from headcount.models.processors import Processor
from headcount.models.tokenizers import tokenizing
from headcount.tasks.conversations import conversation, is_conversation, rendered
from headcount.tasks.kinds import task_kind
from headcount.tasks.task import Examples, Task

RowItem = dict[str, Any]
"""One row by column: token numbers or an array, its label or token labels, its example."""
IGNORED = -100
"""The label of what does not count: padding, and tokens that were not masked."""


PATCH = 768
"""Numbers of an image or a sound that count as one token: 16 x 16 pixels of three colours."""


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Rows of token numbers, ready to be padded; also a torch Dataset of rows."""

    columns: dict[str, list[Any]]
    """The model's inputs, row by row: token numbers (input_ids, and token_type_ids where the
    tokenizer has them), or arrays such as pixel_values or, of several lengths, sounds."""
    labels: np.ndarray | list[list[int]] | None = None
    """(row,) classes or scores, or token labels for each row."""
    padding: dict[str, int] = field(default_factory=dict)
    """What each column is padded with."""
    left: bool = False
    """Padding goes before the tokens instead of behind them."""
    examples: np.ndarray | None = None
    """(row,) the number of the example that each row belongs to, from 0; None: every row is one."""
    kind: str | None = None
    """The kind of task they were made for."""
    corpus: EncodedRows | None = None
    """Rows that every example is compared with; a part of the examples has all of them."""

    def __len__(self) -> int:
        return len(self._first)

    @property
    def _first(self) -> list[Any]:
        return next(iter(self.columns.values()))

    @property
    def count(self) -> int:
        """How many examples there are."""
        return len(self) if self.examples is None else len(np.unique(self.examples))

    def __repr__(self) -> str:
        labels = "" if self.labels is None else ", labels"
        return line(f"{type(self).__name__}({len(self)} rows: {', '.join(self.columns)}{labels})")

    def __getitem__(self, row: int) -> RowItem:
        item: RowItem = {name: column[row] for name, column in self.columns.items()}
        if self.labels is not None:
            item["labels"] = self.labels[row]
        if self.examples is not None:
            item["examples"] = self.examples[row]
        return item

    @property
    def lengths(self) -> np.ndarray:
        """(row,) how many tokens each row has; of pixels and sound, about so many patches."""
        sizes = [
            max(1, row.size // PATCH) if isinstance(row, np.ndarray) else len(row)
            for row in self._first
        ]
        return np.array(sizes, dtype=np.int64)

    @property
    def sizes(self) -> np.ndarray:
        """(example,) how many tokens all its rows have."""
        if self.examples is None:
            return self.lengths
        return np.bincount(np.unique(self.examples, return_inverse=True)[1], self.lengths)

    def rows_of(self, examples: Sequence[int] | np.ndarray) -> list[np.ndarray]:
        """The row numbers of each of these examples."""
        if self.examples is None:
            return [np.array([number]) for number in examples]
        order = np.argsort(self.examples, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(self.examples[order])) + 1)
        return [groups[number] for number in examples]

    def take(self, examples: Sequence[int] | np.ndarray) -> EncodedRows:
        """All rows of these examples, in this order."""
        rows, numbers = examples, None
        if self.examples is not None:
            groups = self.rows_of(examples)
            rows = np.concatenate(groups)
            numbers = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
        columns = {name: [column[i] for i in rows] for name, column in self.columns.items()}
        labels = self.labels
        if isinstance(labels, np.ndarray):
            labels = labels[np.asarray(rows)]
        elif labels is not None:
            labels = [labels[i] for i in rows]
        return replace(self, columns=columns, labels=labels, examples=numbers)

    def with_corpus(self) -> EncodedRows:
        """The rows with the corpus below them: all that a model answers to."""
        if self.corpus is None:
            return self
        columns = {name: [*rows, *self.corpus.columns[name]] for name, rows in self.columns.items()}
        return replace(self, columns=columns, corpus=None)

    def collate(self, items: Sequence[RowItem]) -> dict[str, Tensor]:
        """Padded tensors of these rows, with their attention mask."""
        batch: dict[str, Tensor] = {}
        for name in self.columns:
            values = [item[name] for item in items]
            if isinstance(values[0], np.ndarray):
                batch[name] = torch.from_numpy(_stacked(values))
            else:
                batch[name] = self._pad(values, self.padding.get(name, 0))
        if "input_ids" in self.columns:
            ones = [[1] * len(item["input_ids"]) for item in items]
            batch["attention_mask"] = self._pad(ones, 0)
        if "examples" in items[0]:
            batch["examples"] = torch.tensor([item["examples"] for item in items])
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
        for number, row in enumerate(rows):
            start = width - len(row) if self.left else 0
            padded[number, start : start + len(row)] = row
        return torch.from_numpy(padded)

    def batches(
        self, tokens: int = 4096, rows: int = 1024
    ) -> Iterator[tuple[np.ndarray, dict[str, Tensor]]]:
        """(row numbers, padded batch), longest rows first; at most `tokens` with padding.

        The rows of an example are in one batch.
        """
        plan = plan_batches(self.lengths, tokens, rows)
        if self.examples is not None:
            plan = plan_examples(self.rows_of(range(self.count)), self.lengths, tokens, rows)
        for numbers in plan:
            yield numbers, self.collate([self[i] for i in numbers])


@dataclass(frozen=True, kw_only=True)
class RowOptions:
    """How examples become rows."""

    length: int
    """Tokens of a row at most."""
    seed: int = 0
    """Of what is drawn: the hidden tokens of a masked LM."""
    masked: bool = True
    """Not for training, which masks anew in every epoch, nor where nothing is predicted."""
    packed: bool = False
    """Texts are joined and cut into blocks."""
    classes: tuple[str, ...] = ()
    """Names of the task's classes, in the order of their numbers."""
    decoder: bool = False
    """The model writes with a decoder beside an encoder that reads."""
    chat: bool = False
    """Texts are conversations, as JSON, for the tokenizer's chat template."""
    stride: int | None = None
    """The whole text is cut into windows of `length` tokens, so many apart, instead of blocks."""


def _stacked(values: Sequence[np.ndarray]) -> np.ndarray:
    """Arrays as one, sounds of several lengths with zeros behind them."""
    shapes = [value.shape for value in values]
    stack = np.zeros((len(values), *np.max(shapes, axis=0)), dtype=values[0].dtype)
    for row, value in zip(stack, values, strict=True):
        row[tuple(map(slice, value.shape))] = value
    return stack


def rows_fingerprint(rows: EncodedRows) -> str:
    """How many rows there are, and a short name for exactly these tokens and labels."""
    return f"{rows.count} rows {digest(_content(rows))}"


def _content(rows: EncodedRows) -> Iterator[str | bytes]:
    yield json.dumps([list(rows.columns), rows.padding, rows.left])
    labels = rows.labels if isinstance(rows.labels, list) else []
    for column in (*rows.columns.values(), labels):
        for row in column:
            values = row.tobytes() if isinstance(row, np.ndarray) else array("q", row).tobytes()
            yield len(row).to_bytes(8, "little") + values
    if rows.corpus is not None:
        yield from _content(rows.corpus)
    for numbers in (rows.labels, rows.examples):
        if isinstance(numbers, np.ndarray):
            yield f"{numbers.dtype}".encode() + numbers.tobytes()


def examples_fingerprint(examples: Examples) -> str:
    """How many rows there are, and a short name for exactly these texts and labels."""
    content: list[str | bytes] = [json.dumps(list(column)) for column in examples.texts]
    content += [json.dumps(list(examples.corpus))] if examples.corpus else []
    if examples.labels is not None:
        content += [f"{examples.labels.dtype}", examples.labels.tobytes()]
    return f"{len(examples)} rows {digest(content)}"


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


def plan_examples(
    groups: Sequence[np.ndarray], lengths: np.ndarray, tokens: int, rows: int
) -> list[np.ndarray]:
    """The same for examples of several rows, each group in one batch.

    >>> plan_examples([np.array([0, 1]), np.array([2, 3])], np.array([2, 9, 3, 1]), 20, 99)
    [array([0, 1]), array([2, 3])]
    """
    plan: list[np.ndarray] = []
    longest = 0
    for group in sorted(groups, key=lambda group: -lengths[group].max()):
        size = len(plan[-1]) + len(group) if plan else 0
        if not plan or size > rows or size * longest > tokens:
            plan.append(group)
            longest = int(lengths[group].max())
        else:
            plan[-1] = np.concatenate([plan[-1], group])
    return plan


@tokenizing()
def encode(
    task: Task,
    examples: Examples,
    processor: Processor,
    *,
    max_length: int = 128,
    seed: int = 0,
    masked: bool = True,
    decoder: bool = False,
) -> EncodedRows:
    """The examples as rows with labels of the task's kind; see `RowOptions`."""
    options = RowOptions(
        length=task.window or _limit(processor, max_length),
        seed=seed,
        masked=masked,
        packed=task.packed,
        classes=task.labels,
        decoder=decoder,
        chat=task.chat,
        stride=task.stride or task.window,
    )
    return replace(task_kind(task.kind).encode(examples, processor, options), kind=task.kind)


@tokenizing()
def encode_texts(
    texts: Sequence[Any], tokenizer: PreTrainedTokenizerBase | None, *, max_length: int = 128
) -> EncodedRows:
    """Texts, pairs of texts, or conversations, as rows of tokens."""
    if tokenizer is None:
        raise UsageError("Texts need the model's tokenizer: pass tokenizer=.")
    length = _limit(tokenizer, max_length)
    if is_conversation(texts[0]):
        talks = [conversation(row, f"Row {n}") for n, row in enumerate(texts, start=1)]
        return tokenized(tokenizer, rendered(tokenizer, talks), length=length, special=False)
    paired = isinstance(texts[0], tuple | list)
    for text in texts:
        parts = text if paired else (text,)
        fits = isinstance(text, tuple | list) == paired and len(parts) == 1 + paired
        if not fits or not all(isinstance(part, str) for part in parts):
            kind = "pairs of texts" if paired else "texts"
            raise UsageError(f"The inputs begin as {kind}, but one is {text!r:.60}.")
    columns = [list(column) for column in zip(*texts, strict=True)] if paired else [texts]
    return tokenized(tokenizer, *columns, length=length)


def _limit(processor: Processor, max_length: int) -> int:
    if max_length < 2:
        raise UsageError(f"At least 2 tokens are needed, not {max_length}.")
    return min(max_length, getattr(processor, "model_max_length", max_length))


def tokenized(
    tokenizer: PreTrainedTokenizerBase,
    first: Sequence[str | None],
    second: Sequence[str | None] | None = None,
    *,
    length: int,
    labels: np.ndarray | list[list[int]] | None = None,
    special: bool = True,
) -> EncodedRows:
    """Rows of at most so many tokens; a second text of None makes the row a single one."""

    def call(*texts: Any) -> dict[str, list[list[int]]]:
        out = tokenizer(
            *texts,
            truncation=True,
            max_length=length,
            return_attention_mask=False,
            add_special_tokens=special,
        )
        return {name: out[name] for name in out if name in ("input_ids", "token_type_ids")}

    return padded_rows(_columns(call, first, second), labels, tokenizer)


def with_offsets(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], *, length: int
) -> tuple[dict[str, list[list[int]]], list[list[tuple[int, int]]]]:
    """Columns of tokens, and (row, token) the first letter of each and the one behind it."""
    if not tokenizer.is_fast:
        raise UnsupportedError(
            f"{type(tokenizer).__name__} does not say which letters a token stands for, which tags "
            "are read from: pass a folder with tokenizer.json as --tokenizer."
        )
    out = tokenizer(list(texts), truncation=True, max_length=length, return_offsets_mapping=True)
    columns = {name: out[name] for name in ("input_ids", "token_type_ids") if name in out}
    return columns, out["offset_mapping"]


def _columns(
    call: Callable[..., dict[str, list[list[int]]]],
    first: Sequence[str | None],
    second: Sequence[str | None] | None,
) -> dict[str, list[list[int]]]:
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


def padded_rows(
    columns: dict[str, list[list[int]]],
    labels: np.ndarray | list[list[int]] | None,
    tokenizer: PreTrainedTokenizerBase,
) -> EncodedRows:
    """Rows of tokens, padded as the tokenizer does."""
    padding = {"input_ids": pad_token(tokenizer), "token_type_ids": tokenizer.pad_token_type_id}
    return EncodedRows(columns, labels, padding, tokenizer.padding_side == "left")


def pad_token(tokenizer: PreTrainedTokenizerBase) -> int:
    """What to pad with; a tokenizer without a padding token lends its end token."""
    numbers: tuple[Any, ...] = (
        tokenizer.pad_token_id,
        tokenizer.eos_token_id,
        tokenizer.unk_token_id,
    )
    for number in numbers:
        if number is not None:
            return int(number)
    return 0
