"""Where a head looks in short rows, from where it is weakest to where it is strongest.

A head's strength on a row is the share of its attention that goes to its role there; of a head
without a role, how far from equal its attention is (1 minus the entropy's share). Of the shortest
rows, those at even steps from the weakest to the strongest are kept, each with its decile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headcount.behaviour.after import first_keys, first_of_all, short, with_after
from headcount.behaviour.looks import BatchWeights
from headcount.behaviour.patterns import Side, look
from headcount.behaviour.result import Roles
from headcount.behaviour.tokens import READS, Marks
from headcount.behaviour.words import LOOKS, ROLES
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
                self.rows.append((length, self._count, _alone(batch, row)))
                self.rows = sorted(self.rows, key=lambda item: item[:2])[:ROWS]


def _alone(batch: Batch, row: int) -> Batch:
    """One row without its padding and without what is too long for an example."""
    kept: Batch = {}
    for name, value in batch.items():
        own = "decoder_attention_mask" if name.startswith("decoder") else "attention_mask"
        kept[name] = value[row : row + 1]
        if value.ndim == 2:
            mask = batch.get(own)
            fits = mask is not None and mask.shape == value.shape
            real = mask[row] != 0 if mask is not None and fits else torch.ones_like(value[row])
            places = real.nonzero()[:, 0]
            if len(places) > LONGEST:
                places = torch.cat([places[: LONGEST - 1], places[-1:]])
            kept[name] = kept[name][:, places]
    return kept


def find_examples(
    model: nn.Module,
    found: Roles,
    pool: Pool,
    marks: Marks,
    tokenizer: Any,
    each: int,
    cut: tuple[PreTrainedModel, Mask] | None = None,
) -> Roles:
    """The roles with `each` examples of every head, and where it looks there after a cut."""
    if not each or not pool.rows:
        return found
    roles = dict(zip(found.layout, found.roles, strict=True))
    numbers = {head: number for number, head in enumerate(found.layout)}
    rows: list[dict[Head, dict[str, Any]]] = []
    with torch.no_grad(), evaluating(model):
        for _, number, batch in pool.rows:
            row = _row(model, batch, marks, tokenizer, roles)
            rows.append({head: {"row": number, **example} for head, example in row.items()})
    examples = [
        {"head": number, **example}
        for head, number in numbers.items()
        for example in _chosen([row[head] for row in rows if head in row], each)
    ]
    if cut is not None:
        batches = {number: batch for _, number, batch in pool.rows}
        examples = with_after(examples, batches, *cut)
    return replace(found, examples=tuple(examples))


def _row(
    model: nn.Module,
    batch: Batch,
    marks: Marks,
    tokenizer: Any,
    roles: dict[Head, str | None],
) -> dict[Head, dict[str, Any]]:
    """Every head's example on one row; without those that have no such key there."""
    sights = BatchWeights(marks.sides(model, batch))
    words = {
        name: list(spelled(side.ids[0].tolist(), tokenizer)) for name, side in sights.sides.items()
    }
    told: dict[Head, dict[str, Any]] = {}

    def see(place: AttentionSource, attention: Tensor) -> None:
        if place.use or not attention.shape[1]:
            return  # of a shared layer, its first run
        weights = sights.weights(place, attention)
        scores = look(attention, weights)[0].cpu().numpy()  # (head, quantity)
        looking, looked = READS[place.stack]
        for index, (values, own) in enumerate(zip(attention[0].float(), scores, strict=True)):
            head = Head(place.stack, place.layer, index)
            role = roles[head]
            strength = own[list(LOOKS).index(role)] if role else 1 - own[-1]
            if np.isnan(strength):
                continue
            about = weights.pattern(role)[0] if role in ROLES else torch.ones_like(values).bool()
            example = _example(values, about, sights.queries(place.stack).text[0])
            keys = {} if looking == looked else {"keys": words[looked]}
            told[head] = {"tokens": words[looking], **keys, "strength": short(strength), **example}

    with capture(model, see):
        model(**model_inputs(model, batch))
    return told


def _example(attention: Tensor, about: Tensor, text: Tensor) -> dict[str, Any]:
    """The query that does most of what the head does, its first keys, and every query's first."""
    of_role = torch.where(about & text[:, None], attention, -1.0).amax(1)
    query = int(of_role.argmax())
    weights, most = first_keys(attention, query), first_of_all(attention)
    return {"query": query, "weights": weights, "most": most}


def _chosen(rows: Sequence[dict[str, Any]], each: int) -> list[dict[str, Any]]:
    """Rows at even steps from the weakest, decile 1, to the strongest, 10; a single one is that."""
    ordered = sorted(rows, key=lambda row: row["strength"])
    many = len(ordered)
    count = min(each, many)
    places = [many - 1] if count == 1 else np.linspace(0, many - 1, count).round().astype(int)
    last = max(many - 1, 1)
    return [{"decile": 10 - round(9 * (many - 1 - int(at)) / last), **ordered[at]} for at in places]
