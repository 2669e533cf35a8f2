"""Every next token, from those before it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.base.errors import UsageError
from headcount.models.batches import ModelBatch
from headcount.tasks.conversations import rendered
from headcount.tasks.encoding import IGNORED, EncodedRows, RowOptions, padded_rows, tokenized
from headcount.tasks.kinds.kind import PredictionTable, TokenKind, draw_classes, where_labelled
from headcount.tasks.metrics import Outcome
from headcount.tasks.rows import ScoredRows
from headcount.tasks.task import Examples

BYTES = "bytes"
"""The column with the bytes of text that a token stands for, in windows."""


class CausalLM(TokenKind):
    """The answer at a token is about the one behind it; labels are the row itself."""

    name: ClassVar = "causal-lm"
    head: ClassVar = "causal-lm"
    saved_as: ClassVar = ("ForCausalLM", "LMHeadModel")
    writes: ClassVar = True

    def fits(self, model: nn.Module, answers: Tensor, labels: Tensor) -> bool:
        """Words for every token, of a model that is called a causal one."""
        writes = getattr(getattr(model, "config", None), "is_encoder_decoder", False)
        return answers.ndim > 2 and not writes and is_causal(model)

    def encode(
        self, examples: Examples, processor: PreTrainedTokenizerBase, options: RowOptions
    ) -> EncodedRows:
        """A line a row; packed, all lines are joined and cut into blocks."""
        if options.chat:
            return _conversations(examples, processor, options)
        if options.packed and options.stride is not None:
            begin, ids, sizes = _stream("\n".join(map(str, examples.texts[0])), processor)
            written = bool(begin) and ids[:1] == begin  # in the text itself: it is there once
            if not (windows := _windows(begin, ids[written:], sizes[written:], options)):
                raise UsageError("The text is too short: at least two tokens are needed.")
            return _rows(windows, processor)
        if options.packed:
            columns = {"input_ids": _blocks(examples.texts[0], processor, options.length)}
            return _with_labels(padded_rows(columns, None, processor))
        return _with_labels(super().encode(examples, processor, options))

    def given(
        self, model: PreTrainedModel, rows: EncodedRows, answers: Tensor
    ) -> tuple[EncodedRows, tuple[str, ...]]:
        """Without labels, every token is predicted."""
        return super().given(model, _with_labels(rows) if rows.labels is None else rows, answers)

    def counts(self, labels: Tensor) -> Tensor:
        """All but the first, which nothing comes before."""
        return super().counts(labels[:, 1:])

    def losses(
        self, answers: Tensor, batch: ModelBatch, *, smoothing: float = 0.0, total: bool = False
    ) -> Tensor:
        """Cross-entropy of the next words."""
        return super().losses(*_shifted(answers, batch), smoothing=smoothing, total=total)

    def sample_labels(
        self, answers: Tensor, batch: ModelBatch, generator: torch.Generator
    ) -> Tensor:
        """A token drawn for every next token that has a label."""
        drawn = draw_classes(answers, generator)
        return where_labelled(torch.cat([drawn[:, :1], drawn[:, :-1]], dim=1), batch)

    def read(self, answers: Tensor, batch: ModelBatch) -> Tensor:
        """Counts of the next tokens."""
        return super().read(*_shifted(answers, batch))

    def score(self, kept: np.ndarray, scored: ScoredRows) -> tuple[Outcome, PredictionTable]:
        """In windows, with the bytes of the text that they score."""
        columns, labels = scored.rows.columns, scored.rows.labels
        if BYTES not in columns or not isinstance(labels, list):
            return super().score(kept, scored)
        sizes = np.array([
            sum(size for size, label in zip(row[1:], targets[1:], strict=True) if label != IGNORED)
            for row, targets in zip(columns[BYTES], labels, strict=True)
        ])  # fmt: skip
        # the windows of a conversation are one example
        groups = scored.rows.rows_of(range(len(scored)))
        kept, sizes = (np.array([part[rows].sum(0) for rows in groups]) for part in (kept, sizes))
        outcome, table = super().score(kept, scored)
        predictions = np.column_stack([np.asarray(outcome.predictions), sizes])
        return Outcome(predictions, outcome.labels), table | {BYTES: sizes}


def is_causal(model: nn.Module) -> bool:
    """Whether transformers calls it a causal language model."""
    return any(mark in type(model).__name__ for mark in ("CausalLM", "LMHeadModel"))


def _shifted(answers: Tensor, batch: ModelBatch) -> tuple[Tensor, ModelBatch]:
    """Answers with the labels of the tokens that follow them."""
    assert batch.labels is not None
    return answers[:, :-1], replace(batch, labels=batch.labels[:, 1:])


def _with_labels(rows: EncodedRows) -> EncodedRows:
    """Rows whose labels are their tokens."""
    return replace(rows, labels=[list(ids) for ids in rows.columns["input_ids"]])


def _blocks(
    lines: Sequence[str | None], tokenizer: PreTrainedTokenizerBase, size: int
) -> list[list[int]]:
    """All lines as one stream of tokens, an end token between two, cut into equal blocks."""
    texts: Any = list(lines)
    ids: Any = tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
    end: list[Any] = [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]
    stream = [token for line in ids for token in (*line, *end)]
    blocks = [stream[i : i + size] for i in range(0, len(stream), size)]
    blocks = [block for block in blocks if len(block) > 1]
    if not blocks:
        raise UsageError("The text is too short: at least two tokens are needed.")
    return blocks


Window = tuple[list[int], list[int], list[int]]
"""Tokens, their labels, and the bytes of each."""


def _conversations(
    examples: Examples, tokenizer: PreTrainedTokenizerBase, options: RowOptions
) -> EncodedRows:
    """A conversation a row, or, with a stride, in windows that are its own.

    It begins as its chat template says; where that is with the token that the tokenizer adds
    before a text, every window does.
    """
    talks = [json.loads(str(text)) for text in examples.texts[0]]
    texts = rendered(tokenizer, talks)
    if options.stride is None:
        return _with_labels(tokenized(tokenizer, texts, length=options.length, special=False))
    windows: list[Window] = []
    numbers: list[int] = []
    for number, text in enumerate(texts):
        begin, ids, sizes = _stream(text, tokenizer)
        if begin and ids[:1] == begin:
            ids, sizes = ids[1:], sizes[1:]
        else:
            begin = []
        part = _windows(begin, ids, sizes, options)
        if not part:
            raise UsageError(f"Conversation {number + 1} has fewer than two tokens.")
        windows += part
        numbers += [number] * len(part)
    return replace(_rows(windows, tokenizer), examples=np.array(numbers))


def _windows(
    begin: list[int], ids: list[int], sizes: list[int], options: RowOptions
) -> list[Window]:
    """Windows over a text, each token scored once, in the first window that has it.

    Every window begins with the tokenizer's first token where it adds one; without, the first
    token of the text, or with no overlap of every window, is predicted from nothing: no label.
    """
    size = options.length - len(begin)
    stride = min(options.stride or size, size)
    windows, scored = [], 0
    for first in range(0, len(ids), stride):
        end = min(first + size, len(ids))
        targets = [IGNORED] * (len(begin) + scored - first) + ids[scored:end]
        if any(label != IGNORED for label in targets[1:]):  # of a single last token there is none
            count = [0] * len(begin) + sizes[first:end]
            windows.append(([*begin, *ids[first:end]], targets, count))
        scored = end
        if end == len(ids):
            break
    return windows


def _rows(windows: Sequence[Window], tokenizer: PreTrainedTokenizerBase) -> EncodedRows:
    ids, labels, sizes = (list(column) for column in zip(*windows, strict=True))
    return padded_rows({"input_ids": ids, BYTES: sizes}, labels, tokenizer)


def _stream(
    text: str, tokenizer: PreTrainedTokenizerBase
) -> tuple[list[int], list[int], list[int]]:
    """The token that is added before a text, if any, its tokens, and the bytes of each.

    Where the tokenizer does not say which letters a token stands for, all bytes are 0.
    """
    options: dict[str, Any] = {"return_offsets_mapping": tokenizer.is_fast, "verbose": False}
    whole: Any = tokenizer(text, add_special_tokens=False, **options)
    added: Any = tokenizer("")["input_ids"]
    begin = added[: added[:1] == [tokenizer.bos_token_id]]
    ids = whole["input_ids"]
    if not tokenizer.is_fast or not ids:
        return begin, ids, [0] * len(ids)
    starts = [start for start, _ in whole["offset_mapping"]]
    before = np.cumsum([0, *(len(letter.encode()) for letter in text)])
    return begin, ids, np.diff(before[[0, *starts[1:], len(text)]]).tolist()
