"""Every next token, from those before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.base.errors import UsageError
from headcount.models.batches import ModelBatch
from headcount.tasks.encoding import EncodedRows, RowOptions, padded_rows
from headcount.tasks.kinds.kind import TokenKind, draw_classes, where_labelled
from headcount.tasks.task import Examples


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
