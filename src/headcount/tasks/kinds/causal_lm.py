"""Every next token, from those before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.base.errors import UsageError
from headcount.models.batches import ModelBatch
from headcount.tasks.encoding import IGNORED, EncodedRows, RowOptions, padded_rows
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
        if options.packed and options.stride is not None:
            return _windows("\n".join(map(str, examples.texts[0])), processor, options)
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
        outcome, table = super().score(kept, scored)
        columns, labels = scored.rows.columns, scored.rows.labels
        if BYTES not in columns or not isinstance(labels, list):
            return outcome, table
        sizes = [
            sum(size for size, label in zip(row[1:], targets[1:], strict=True) if label != IGNORED)
            for row, targets in zip(columns[BYTES], labels, strict=True)
        ]
        predictions = np.column_stack([np.asarray(outcome.predictions), sizes])
        return Outcome(predictions, outcome.labels), table | {BYTES: np.array(sizes)}


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


def _windows(text: str, tokenizer: PreTrainedTokenizerBase, options: RowOptions) -> EncodedRows:
    """Windows over a text, each token scored once, in the first window that has it.

    Every window begins with the tokenizer's first token where it adds one; without, the first
    token of the text, or with no overlap of every window, is predicted from nothing: no label.
    """
    begin, ids, sizes = _stream(text, tokenizer)
    size = options.length - len(begin)
    stride = min(options.stride or size, size)
    if len(begin) + len(ids) < 2:
        raise UsageError("The text is too short: at least two tokens are needed.")
    columns: dict[str, list[list[int]]] = {"input_ids": [], BYTES: []}
    labels, scored = [], 0
    for first in range(0, len(ids), stride):
        end = min(first + size, len(ids))
        context = scored - first
        window = [*begin, *ids[first:end]]
        targets = [IGNORED] * (len(begin) + context) + ids[scored:end]
        if any(label != IGNORED for label in targets[1:]):  # of a single last token there is none
            columns["input_ids"].append(window)
            columns[BYTES].append([0] * len(begin) + sizes[first:end])
            labels.append(targets)
        scored = end
        if end == len(ids):
            break
    return padded_rows(columns, labels, tokenizer)


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
