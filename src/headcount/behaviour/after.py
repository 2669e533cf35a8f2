"""Where the heads that a cut left look in the same examples: before and after, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headcount.changes.pair import open_pair
from headcount.costs.pairs import mask_between
from headcount.heads import Head, Mask
from headcount.likeness.inputs import Batch
from headcount.models.batches import model_inputs
from headcount.models.capture import AttentionSource, capture
from headcount.models.hooks import evaluating

KEYS = 5
"""Keys that are told of the query that is shown."""


def kept_in(model: PreTrainedModel, pruned: PreTrainedModel) -> Mask:
    """The heads that the second model still has, or why it is no cut of the first."""
    return mask_between(*open_pair(model, pruned, same_heads=False))


def with_after(
    examples: Sequence[Mapping[str, Any]],
    batches: Mapping[int, Batch],
    pruned: nn.Module,
    mask: Mask,
) -> list[dict[str, Any]]:
    """Each example with what its head looks at in the pruned model; None where it is gone.

    The `row` of an example is the key of its batch.
    """
    heads = list(mask.layout)
    told = [dict(example) for example in examples]
    with torch.no_grad(), evaluating(pruned):
        for row in sorted({example["row"] for example in told}):
            maps = _attention(pruned, batches[row], mask)
            for example in told:
                if example["row"] == row:
                    example["after"] = _told(maps.get(heads[example["head"]]), example["query"])
    return told


def _attention(pruned: nn.Module, batch: Batch, mask: Mask) -> dict[Head, Tensor]:
    """The maps of one row, by the numbers that heads have in the model before the cut."""
    maps: dict[Head, Tensor] = {}

    def see(place: AttentionSource, attention: Tensor) -> None:
        if place.use:
            return  # of a shared layer, its first run
        numbers = mask.indices(place.stack, place.layer)
        for index, values in zip(numbers, attention[0].float().cpu(), strict=True):
            maps[Head(place.stack, place.layer, index)] = values

    with capture(pruned, see):
        pruned(**model_inputs(pruned, batch))
    return maps


def _told(attention: Tensor | None, query: int) -> dict[str, Any] | None:
    if attention is None:
        return None
    return {"weights": first_keys(attention, query), "most": first_of_all(attention)}


def first_keys(attention: Tensor, query: int) -> list[list[float]]:
    """What one query looks at most: (key, weight)."""
    best = attention[query].topk(min(KEYS, attention.shape[1]))
    return pairs(best.indices, best.values)


def first_of_all(attention: Tensor) -> list[list[float]]:
    """What every query looks at most."""
    top, keys = attention.max(1)
    return pairs(keys, top)


def pairs(keys: Tensor, values: Tensor) -> list[list[float]]:
    """(key, weight) with three digits."""
    return [[key, short(value)] for key, value in zip(keys.tolist(), values.tolist(), strict=True)]


def short(value: float) -> float:
    """Three digits are enough to be shown."""
    return round(float(value), 3)
