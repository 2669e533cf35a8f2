"""Where a head attends in short rows, from where it is weakest to where it is strongest.

A head's strength on a row is the share of its attention that goes to its role there; of a head
without a role, how far from equal its attention is (1 minus the entropy's share). Of the shortest
rows, those at even steps from the weakest to the strongest are kept, each with its decile; with a
pruned model also where the head attends there after pruning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.behaviour.attention import BatchWeights
from headcount.behaviour.patterns import Side, attention_scores
from headcount.behaviour.result import Roles
from headcount.behaviour.tokens import READS, Marks
from headcount.behaviour.words import ATTENTION, ROLES
from headcount.changes.sentence import spelled
from headcount.heads import Head, Mask
from headcount.likeness.inputs import Batch
from headcount.models.batches import model_inputs
from headcount.models.capture import AttentionSource, capture
from headcount.models.hooks import evaluating

ROWS = 50
"""Rows that examples are taken from."""
LONGEST = 40
"""Tokens of the longest of them; what is longer loses those before its last token."""
KEYS = 5
"""Keys that are listed of the query that is shown."""


Example = dict[str, Any]
"""One head on one row, as a file of roles has it (docs/records.md)."""


class Pool:
    """The shortest rows of all that came by, as batches of one row without padding."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, Batch]] = []
        self._count = 0

    def add(self, batch: Batch, sides: dict[str, Side]) -> None:
        """Take in the rows of a batch that are among the shortest."""
        lengths = torch.stack([side.lengths for side in sides.values()]).amax(0).tolist()
        has_text = sides["encoder"].text.any(1).tolist()
        for row, length in enumerate(lengths):
            self._count += 1
            worse = len(self.rows) == ROWS and length >= self.rows[-1][0]
            if length > 1 and has_text[row] and not worse:
                self.rows.append((length, self._count, _single(batch, row)))
                self.rows = sorted(self.rows, key=lambda item: item[:2])[:ROWS]


def _single(batch: Batch, row: int) -> Batch:
    """One row without its padding and without what is too long for an example."""
    kept: Batch = {}
    for name, value in batch.items():
        kept[name] = value[row : row + 1]
        if value.ndim == 2:
            decoder = name.startswith("decoder")
            mask = batch.get("decoder_attention_mask" if decoder else "attention_mask")
            fits = mask is not None and mask.shape == value.shape
            real = mask[row] != 0 if mask is not None and fits else torch.ones_like(value[row])
            positions = real.nonzero()[:, 0]
            if len(positions) > LONGEST:
                positions = torch.cat([positions[: LONGEST - 1], positions[-1:]])
            kept[name] = kept[name][:, positions]
    return kept


def find_examples(
    model: nn.Module,
    roles: Roles,
    pool: Pool,
    marks: Marks,
    tokenizer: PreTrainedTokenizerBase | None,
    count: int,
    pruned: tuple[PreTrainedModel, Mask] | None = None,
) -> Roles:
    """The roles with `count` examples of every head, and where it attends there after pruning."""
    if not count or not pool.rows:
        return roles
    by_head = dict(zip(roles.layout, roles.roles, strict=True))
    rows: list[dict[Head, Example]] = []
    with torch.no_grad(), evaluating(model):
        for _, number, batch in pool.rows:
            row = _row(model, batch, marks, tokenizer, by_head)
            rows.append({head: {"row": number, **example} for head, example in row.items()})
    examples = [
        {"head": number, **example}
        for number, head in enumerate(roles.layout)
        for example in spread([row[head] for row in rows if head in row], count)
    ]
    if pruned is not None:
        batches = {number: batch for _, number, batch in pool.rows}
        examples = with_pruned(examples, batches, *pruned)
    return replace(roles, examples=tuple(examples))


def _row(
    model: nn.Module,
    batch: Batch,
    marks: Marks,
    tokenizer: PreTrainedTokenizerBase | None,
    roles: dict[Head, str | None],
) -> dict[Head, Example]:
    """Every head's example on one row; without those that have no such key there."""
    batch_weights = BatchWeights(marks.sides(model, batch))
    words = {
        name: list(spelled(side.ids[0].tolist(), tokenizer))
        for name, side in batch_weights.sides.items()
    }
    examples: dict[Head, Example] = {}

    def see(source: AttentionSource, attention: Tensor) -> None:
        if source.use or not attention.shape[1]:
            return  # of a shared layer, its first run
        weights = batch_weights.weights(source, attention)
        scores = attention_scores(attention, weights)[0].cpu().numpy()  # (head, quantity)
        queries, keys = READS[source.stack]
        text = batch_weights.queries(source.stack).text[0]
        for index, (values, numbers) in enumerate(zip(attention[0].float(), scores, strict=True)):
            head = Head(source.stack, source.layer, index)
            role = roles[head]
            strength = numbers[list(ATTENTION).index(role)] if role else 1 - numbers[-1]
            if np.isnan(strength):
                continue
            about = weights.pattern(role)[0] if role in ROLES else torch.ones_like(values).bool()
            # the query that does most of what the head does
            query = int(torch.where(about & text[:, None], values, -1.0).amax(1).argmax())
            examples[head] = {
                "tokens": words[queries],
                **({} if queries == keys else {"keys": words[keys]}),
                "strength": digits(strength),
                "query": query,
                **first_keys(values, query),
            }

    with capture(model, see):
        model(**model_inputs(model, batch))
    return examples


def spread(rows: Sequence[Example], count: int) -> list[Example]:
    """Rows at even steps from the weakest, decile 1, to the strongest, 10; a single one is that."""
    ordered = sorted(rows, key=lambda row: row["strength"])
    many = len(ordered)
    count = min(count, many)
    steps = [many - 1] if count == 1 else np.linspace(0, many - 1, count).round().astype(int)
    last = max(many - 1, 1)
    return [{"decile": 10 - round(9 * (many - 1 - int(at)) / last), **ordered[at]} for at in steps]


def with_pruned(
    examples: Sequence[Example], batches: Mapping[int, Batch], pruned: nn.Module, mask: Mask
) -> list[Example]:
    """Each example with what its head attends to in the pruned model, or that it was removed.

    The `row` of an example is the key of its batch.
    """
    heads = list(mask.layout)
    after: dict[int, dict[str, object]] = {}
    with torch.no_grad(), evaluating(pruned):
        for row in sorted({example["row"] for example in examples}):
            maps = _attention(pruned, batches[row], mask)
            for number, example in enumerate(examples):
                if example["row"] == row:
                    values = maps.get(heads[example["head"]])
                    after[number] = {"removed": True}
                    if values is not None:
                        after[number] = first_keys(values, example["query"])
    return [{**example, "after": after[number]} for number, example in enumerate(examples)]


def _attention(pruned: nn.Module, batch: Batch, mask: Mask) -> dict[Head, Tensor]:
    """The maps of one row, by the numbers that heads have in the model before pruning."""
    maps: dict[Head, Tensor] = {}

    def see(source: AttentionSource, attention: Tensor) -> None:
        if source.use:
            return  # of a shared layer, its first run
        numbers = mask.indices(source.stack, source.layer)
        for index, values in zip(numbers, attention[0].float().cpu(), strict=True):
            maps[Head(source.stack, source.layer, index)] = values

    with capture(pruned, see):
        pruned(**model_inputs(pruned, batch))
    return maps


def first_keys(attention: Tensor, query: int) -> dict[str, object]:  # (query, key)
    """What one query attends to most, and what every query does."""
    best = attention[query].topk(min(KEYS, attention.shape[1]))
    top, keys = attention.max(1)
    return {"weights": pairs(best.indices, best.values), "most": pairs(keys, top)}


def pairs(keys: Tensor, values: Tensor) -> list[list[float]]:
    """(key, weight) with three digits."""
    return [[key, digits(value)] for key, value in zip(keys.tolist(), values.tolist(), strict=True)]


def digits(value: float) -> float:
    """Three digits are enough to be shown."""
    return round(float(value), 3)
