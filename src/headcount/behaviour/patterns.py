"""Where attention goes: every pattern as weights over (query, key), all of them in one product.

A query counts when it is a token of text: padding and special tokens ([CLS], [SEP], BOS, the
decoder's start) ask for nothing. Of the queries that count, a pattern has those with at least one
such visible key, so that a head is not blamed where there is nothing to find. A key is visible when
it is no padding and within the layer's band: what lies ahead is not in a causal layer, and what is
too far not in a sliding window. Chance is equal attention to all visible keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from headcount.behaviour.words import ROLES

SHARES = (*ROLES, "reach")
ACROSS = ("first", "separator")
"""Patterns that cross-attention has: its queries and keys are of different texts."""


@dataclass(frozen=True, eq=False)
class Side:
    """The tokens of a batch that are queries, or that are keys."""

    ids: Tensor  # (input, token)
    real: Tensor  # (input, token): no padding
    text: Tensor  # (input, token): neither padding nor special
    separators: Tensor  # (input, token)
    columns: int = 0
    """Patches in a row of an image; 0 where tokens are a text."""
    start: int = 0
    """Tokens before the first patch."""

    @cached_property
    def places(self) -> tuple[Tensor, Tensor]:  # (input, token) each
        """Row and column of every patch of an image; nonsense for what stands before them."""
        patches = self.positions - self.start
        return patches.div(self.columns, rounding_mode="floor"), patches % self.columns

    @cached_property
    def positions(self) -> Tensor:  # (input, token)
        """Every token's number in its row, padding left out."""
        return self.real.long().cumsum(1) - 1

    @cached_property
    def lengths(self) -> Tensor:  # (input,)
        """Tokens of every row without padding."""
        return self.real.sum(1)


class Band(NamedTuple):
    """How many tokens before and behind itself a query sees, in every input."""

    back: tuple[int, ...]
    ahead: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Weights:
    """What turns attention into scores."""

    table: Tensor  # (input, query x key, share): the mean over queries is in them
    rows: Tensor  # (input, query, 2): of entropy and of its share
    defined: Tensor  # (input, quantity): whether any query has such a key
    chance: Tensor  # (input, quantity): what equal attention would give

    def pattern(self, name: str) -> Tensor:  # (input, query, key)
        """Which keys a pattern is about."""
        queries = self.rows.shape[1]
        return self.table[..., SHARES.index(name)].unflatten(1, (queries, -1)) > 0


def visible_band(attention: Tensor, queries: Side, keys: Side) -> Band:  # (input, head, query, key)
    """How far a layer sees, from where any of its heads has weight.

    Weights of a softmax are above 0 wherever they may be, so mostly the corners tell.
    """
    rows = torch.arange(len(attention), device=attention.device)
    first, last = (_end(queries.real, end) for end in (0, -1))
    second = torch.minimum(first + 1, last)
    corners = [
        attention[rows, :, query, key].amax(1) > 0
        for query, key in ((last, first), (first, last), (first, second))
    ]
    most = queries.lengths - 1
    back = torch.where(corners[0], most, -1)
    ahead = torch.where(corners[1], most, torch.where(corners[2], -1, 0))
    if bool((back < 0).any() or (ahead < 0).any()):
        seen = attention.amax(1) > 0
        gaps = queries.positions[:, :, None] - keys.positions[:, None]
        gaps = torch.where(seen & queries.real[:, :, None] & keys.real[:, None], gaps, 0)
        back = torch.where(back < 0, gaps.amax((1, 2)), back)
        ahead = torch.where(ahead < 0, -gaps.amin((1, 2)), ahead)
    return Band(tuple(back.tolist()), tuple(ahead.tolist()))


def weights_for(queries: Side, keys: Side, band: Band | None) -> Weights:
    """The weights of one batch; without a band, the keys are another text's: cross-attention."""
    query, key = queries.positions[:, :, None], keys.positions[:, None]
    visible = queries.real[:, :, None] & keys.real[:, None]  # (input, query, key)
    if band is not None:
        back, ahead = (torch.tensor(side, device=query.device)[:, None, None] for side in band)
        visible = visible & (key >= query - back) & (key <= query + ahead)
    sees = visible.sum(-1).clamp_min(1).double()  # (input, query)
    table, defined, chance = [], [], []
    for mask in _masks(queries, keys, crossed=band is None):
        mask = mask & visible & queries.text[:, :, None]
        has = mask.any(-1)
        count = has.sum(1)
        table.append(mask / count.clamp_min(1)[:, None, None])
        defined.append(count > 0)
        chance.append((mask.sum(-1) / sees).sum(1) / count.clamp_min(1))
    count = queries.text.sum(1)
    mean = queries.text / count.clamp_min(1)[:, None]
    far = _distances(queries, keys) * mean[:, :, None] * visible
    table.append(far)
    defined.append((count > 0) & (band is not None))
    chance.append((far.sum(-1) / sees).sum(1))
    bits = sees.log2()
    choice = queries.text & (sees > 1)
    chosen = choice.sum(1)
    rows = [mean, choice / bits.clamp_min(1e-9) / chosen.clamp_min(1)[:, None]]
    defined += [count > 0, chosen > 0]
    chance += [(mean * bits).sum(1), torch.ones_like(chance[0])]
    return Weights(
        torch.stack(table, -1).float().flatten(1, 2),
        torch.stack(rows, -1).float(),
        torch.stack(defined, -1),
        torch.stack([values.double() for values in chance], -1),
    )


def attention_scores(attention: Tensor, weights: Weights) -> Tensor:  # (input, head, query, key)
    """(input, head, quantity) in the order of `ATTENTION`; NaN where an input has no such query."""
    attention = attention.float()
    shares = attention.flatten(2) @ weights.table
    # 0 times the logarithm of 0 is 0; twice as fast as torch.special.entr
    bits = -(attention.clamp_min(1e-38).log2_().mul_(attention)).sum(-1) @ weights.rows
    scores = torch.cat([shares, bits], -1).double()
    return torch.where(weights.defined[:, None], scores, torch.nan)


def _masks(queries: Side, keys: Side, *, crossed: bool) -> Iterator[Tensor]:
    """(input, query, key) which keys each role is about, visible or not."""
    query, key = queries.positions[:, :, None], keys.positions[:, None]
    here = torch.zeros_like(query == key) if crossed else query == key
    never = torch.zeros_like(here)
    beside = ~never
    if queries.columns:  # the patch before the first of a row is in the row above
        rows, _ = queries.places
        beside = (rows[:, :, None] == rows[:, None]) & keys.text[:, None]
    before = keys.ids.roll(1, 1)
    same = (queries.ids[:, :, None] == keys.ids[:, None]) & keys.text[:, None]
    behind = (queries.ids[:, :, None] == before[:, None]) & keys.text.roll(1, 1)[:, None]
    behind[:, :, 0] = False
    masks = {
        "previous": (key == query - 1) & beside,
        "next": (key == query + 1) & beside,
        "same": here,
        "first": (key == 0) & ~here,
        "separator": keys.separators[:, None] & (key > 0) & ~here,
        "duplicate": same & ~here,
        "induction": behind & (key <= query) & ~here,
    }
    for name in ROLES:
        yield never if crossed and name not in ACROSS else masks[name]


def _distances(queries: Side, keys: Side) -> Tensor:  # (input, query, key)
    """Tokens between a query and a key; between patches the straight line, to others nothing."""
    if not queries.columns:
        return (queries.positions[:, :, None] - keys.positions[:, None]).abs()
    down, right = (
        query[:, :, None] - key[:, None]
        for query, key in zip(queries.places, keys.places, strict=True)
    )
    return (down**2 + right**2).float().sqrt() * keys.text[:, None]


def _end(real: Tensor, end: int) -> Tensor:
    """(input,) the place of the first or the last token that is no padding."""
    positions = torch.arange(real.shape[1], device=real.device).expand_as(real)
    if end == 0:
        return torch.where(real, positions, real.shape[1]).amin(1)
    return torch.where(real, positions, 0).amax(1)
