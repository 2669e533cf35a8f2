"""Masked-LM batches from the pocket corpus, each a function of its seed and step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor

from headcount.tasks.pocket.corpus import APART, TOGETHER
from headcount.tasks.pocket.world import examples

IGNORED: Final = -100


@dataclass(frozen=True, kw_only=True)
class Masking:
    """How much is hidden."""

    rate: float = 0.15  # of the words of a text
    heavy: float = 0.3  # chance that one side of a pair that belongs together is hidden heavily
    heavy_rate: float = 0.5  # so much that its words cannot be had by elimination, only by role
    bare: float = 0.4  # chance that nothing of a pair is hidden: only whether it belongs together
    replaced: float = 0.8  # of the chosen words: shown as [MASK]
    random: float = 0.1  # of the chosen words: shown as some other word


def mask_tokens(
    batch: dict[str, Tensor], tokenizer: Any, generator: torch.Generator, masking: Masking
) -> dict[str, Tensor]:
    """Hide words and add `labels`; special tokens are never chosen."""
    ids = batch["input_ids"]  # (text, token)
    segments = batch["token_type_ids"]
    special = torch.isin(ids, torch.tensor(tokenizer.all_special_ids))
    paired = segments.any(dim=1)
    dice = torch.rand(len(ids), 2, generator=generator)
    side = (dice[:, 1] < 0.5).long()
    matched = batch["next_sentence_label"] == TOGETHER
    heavy = (matched & (dice[:, 0] < masking.heavy))[:, None] & (segments == side[:, None])
    unasked = paired & (batch["next_sentence_label"] == IGNORED)
    heavy |= unasked[:, None] & (segments == 1)  # a verdict
    rate = torch.where(heavy, masking.heavy_rate, masking.rate)
    bare = paired & ~unasked & (dice[:, 0] > 1 - masking.bare)
    rate = torch.where(bare[:, None], 0.0, rate)
    chosen = (torch.rand(ids.shape, generator=generator) < rate) & ~special
    chance = torch.rand(ids.shape, generator=generator)
    words = torch.randint(
        len(tokenizer.all_special_ids), len(tokenizer), ids.shape, generator=generator
    )
    shown = torch.where(chosen & (chance < masking.replaced), tokenizer.mask_token_id, ids)
    noisy = chosen & (chance >= masking.replaced) & (chance < masking.replaced + masking.random)
    shown = torch.where(noisy, words, shown)
    return {
        **batch,
        "input_ids": shown,
        "labels": torch.where(chosen, ids, IGNORED),
        # what is hidden this heavily belongs together, which would give the answer away
        "next_sentence_label": batch["next_sentence_label"].where(~heavy.any(dim=1), IGNORED),
    }


def corpus_batches(
    tokenizer: Any,
    *,
    split: str,
    seed: int,
    pool: int,
    size: int,
    count: int,
    masking: Masking,
    apart: bool = True,
) -> list[dict[str, Tensor]]:
    """`count` batches of like length from the `pool`-th stretch of the corpus.

    Without the pairs that are `apart`, batches are smaller by their share.
    """
    rows = examples("pocket-corpus", split, count * size, seed, start=pool * count * size)
    rows = [row for row in rows if apart or row["together"] != APART]
    size = len(rows) // count
    rows.sort(key=lambda row: len(row["text"].split()) + len((row["text_b"] or "").split()))
    generator = torch.Generator().manual_seed(seed * 1_000_003 + pool)
    batches: list[dict[str, Tensor]] = []
    for at in torch.randperm(count, generator=generator).tolist():
        part = rows[at * size : (at + 1) * size]
        encoded = _encode(tokenizer, part)
        batches.append(mask_tokens(encoded, tokenizer, generator, masking))
    return batches


def _encode(tokenizer: Any, rows: list[dict[str, Any]]) -> dict[str, Tensor]:
    """Single sentences and pairs in one padded batch."""
    texts = [
        (row["text"],) if row["text_b"] is None else (row["text"], row["text_b"]) for row in rows
    ]
    parts = [tokenizer(*text) for text in texts]
    labels = [IGNORED if row["together"] is None else row["together"] for row in rows]
    padded = tokenizer.pad(parts, return_tensors="pt")
    return {**padded, "next_sentence_label": torch.tensor(labels)}
