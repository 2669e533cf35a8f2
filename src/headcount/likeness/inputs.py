"""What redundancy is measured on: rows of tokens, texts or batches, all as batches with masks.

Rows are visited so that every beginning of the run, and every sample, has short and long rows in
the proportions of the whole: length explains half of the variance of the token-based distances.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from headcount.base.digest import digest
from headcount.base.errors import UsageError
from headcount.models.batches import TARGETS, shift_labels
from headcount.models.fingerprint import raw
from headcount.tasks.as_rows import Data, as_rows
from headcount.tasks.encoding import EncodedRows, plan_batches, rows_fingerprint

CHUNK = 64
"""Rows that are batched together; between two chunks a run can stop and go on."""
TOKENS = 2048
"""Tokens of a batch, padding included."""
ATTENTION = 2**25
"""Numbers of attention held at once: 128 MB in single precision."""

Batch = dict[str, Tensor]


@dataclass(frozen=True)
class Stream:
    """Batches in the order they are measured; between two lists of them a run can stop."""

    chunks: Iterator[list[Batch]]
    total: int | None
    """Inputs that will come, where that is known."""
    rows: str | None = None
    """A fingerprint of all of them, where they are there before the first is measured."""


def open_stream(
    model: nn.Module,
    inputs: Data,
    *,
    tokenizer: PreTrainedTokenizerBase | None = None,
    limit: int | None = None,
    max_length: int = 128,
    seed: int = 0,
    heads: int = 1,
) -> Stream:
    """Whatever `as_rows` takes, as batches; of rows a sample that is even over lengths."""
    if limit is not None and limit < 1:
        raise UsageError(f"At least one input is measured, not {limit}.")
    rows = as_rows(model, inputs, tokenizer=tokenizer, labels=False, max_length=max_length)
    if isinstance(rows, EncodedRows):
        return _from_rows(model, rows, limit, seed, heads)
    total = None
    if isinstance(rows, list | tuple):
        total = sum(_size(batch) for batch in rows if isinstance(batch, Mapping) and batch)
    total = min(total, limit) if total and limit else total or None
    return Stream(_from_batches(rows, limit), total)


def even_order(lengths: np.ndarray, limit: int | None = None, seed: int = 0) -> np.ndarray:
    """Row numbers of a sample that is even over lengths, in an order that is even, too.

    Of the rows by length (ties drawn) every k-th is taken from a drawn start; the order counts
    with its bits reversed, so that each beginning is spread over all lengths.

    >>> lengths = np.arange(1000)
    >>> np.sort(lengths[even_order(lengths, 4)]).round(-1).tolist()
    [100, 350, 600, 850]
    """
    rng = np.random.default_rng(seed)
    by_length = np.lexsort((rng.permutation(len(lengths)), lengths))
    count = len(lengths) if limit is None else min(limit, len(lengths))
    ranks = np.floor((np.arange(count) + rng.random()) * len(lengths) / count).astype(np.int64)
    chosen = by_length[np.minimum(ranks, len(lengths) - 1)]
    bits = max(1, int(count - 1).bit_length())
    start = int(rng.integers(count))
    turned = [int(f"{(at + start) % count:0{bits}b}"[::-1], 2) for at in range(count)]
    return chosen[np.argsort(turned)]


def digest_of(batches: list[Batch], before: str = "") -> str:
    """A fingerprint of everything up to and with these batches."""
    content = (
        piece
        for batch in batches
        for name in sorted(batch)
        for piece in (f"{name}{tuple(batch[name].shape)}", raw(batch[name]))
    )
    return digest(chain((before,), content), size=16)


def _from_rows(
    model: nn.Module, rows: EncodedRows, limit: int | None, seed: int, heads: int
) -> Stream:
    if not len(rows):
        raise UsageError("There are no inputs to measure on.")
    rows = replace(rows, examples=None)  # every row counts by itself
    order = even_order(rows.lengths, limit, seed)
    # padding goes behind: before the tokens it would move their positions in some models
    rows = replace(rows.take(order), left=False)

    def chunks() -> Iterator[list[Batch]]:
        for start in range(0, len(rows), CHUNK):
            part = rows.take(range(start, min(start + CHUNK, len(rows))))
            longest = int(part.lengths.max())
            most = max(1, ATTENTION // max(1, heads * longest * longest))
            plan = plan_batches(part.lengths, TOKENS, most)
            yield [_batch(model, part.take(numbers)) for numbers in plan]

    return Stream(chunks(), len(rows), rows_fingerprint(rows))


def _batch(model: nn.Module, rows: EncodedRows) -> Batch:
    """The rows as one batch; an encoder-decoder's decoder reads the target, or the text again."""
    bare = replace(rows, labels=None)
    batch = bare.collate([bare[row] for row in range(len(rows))])
    if not getattr(model.config, "is_encoder_decoder", False) or "decoder_input_ids" in batch:
        return batch
    if not isinstance(rows.labels, list) and "input_ids" not in rows.columns:
        raise UsageError("Rows of sound have labels: the tokens that the decoder reads.")
    targets = rows.labels if isinstance(rows.labels, list) else rows.columns["input_ids"]
    targets = rows.columns.get(TARGETS, targets)
    target_rows = EncodedRows({"input_ids": targets}, None, {"input_ids": -100})
    padded = target_rows.collate([target_rows[row] for row in range(len(target_rows))])
    shifted = shift_labels(model, padded["input_ids"])
    if shifted is None:
        raise UsageError(
            f"{type(model).__name__} makes no decoder inputs from texts: pass batches that have "
            "decoder_input_ids."
        )
    batch["decoder_input_ids"] = shifted
    batch["decoder_attention_mask"] = padded["attention_mask"]
    return batch


def _from_batches(items: Iterable[object], limit: int | None) -> Iterator[list[Batch]]:
    left = limit
    for item in items:
        if not isinstance(item, Mapping) or not item:
            raise UsageError(f"The inputs begin as batches, but one is {item!r:.60}.")
        batch = {name: torch.as_tensor(value) for name, value in item.items()}
        sizes = {name: len(value) if value.ndim else 0 for name, value in batch.items()}
        if len(set(sizes.values())) != 1:
            raise UsageError(f"The tensors of a batch hold different numbers of rows: {sizes}.")
        if left is not None:
            batch = {name: value[:left] for name, value in batch.items()}
            left -= _size(batch)
        if _size(batch):
            yield [batch]
        if left == 0:
            return


def _size(batch: Mapping[str, Sized]) -> int:
    return len(next(iter(batch.values())))
