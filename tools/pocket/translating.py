"""Batches for the pocket translator."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from headcount.tasks.pocket.world import examples


def encode_translations(tokenizer: Any, rows: list[dict[str, Any]]) -> dict[str, Tensor]:
    """Sources as inputs, targets as labels, padded."""
    sources = tokenizer([row["source"] for row in rows], padding=True, return_tensors="pt")
    targets = tokenizer([row["target"] for row in rows], padding=True, return_tensors="pt")
    labels = targets["input_ids"].masked_fill(targets["attention_mask"] == 0, -100)
    return {
        "input_ids": sources["input_ids"],
        "attention_mask": sources["attention_mask"],
        "labels": labels,
    }


def translation_batches(
    tokenizer: Any, *, seed: int, pool: int, size: int, count: int
) -> list[dict[str, Tensor]]:
    """`count` batches of like length from the `pool`-th stretch of the training sentences."""
    rows = examples("pocket-translation", "train", count * size, seed, start=pool * count * size)
    rows.sort(key=lambda row: len(row["target"].split()))
    generator = torch.Generator().manual_seed(seed * 1_000_003 + pool)
    return [
        encode_translations(tokenizer, rows[at * size : (at + 1) * size])
        for at in torch.randperm(count, generator=generator).tolist()
    ]
