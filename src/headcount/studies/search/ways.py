"""The ways a layer can keep heads, each with its loss, and which of them to take under a budget.

A loss is that along the surgeon's path. The least summed loss whose summed cost fits is a
multiple-choice knapsack, solved by dynamic programming over layers. Costs are counted in whole
units, rounded up, so that what is chosen fits for certain.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headcount.heads import Head, Layout, Mask
from headcount.pruning.counts import Place


@dataclass(frozen=True, kw_only=True)
class LayerChoice:
    """One layer with some of its heads."""

    heads: tuple[int, ...]
    """Which stay."""
    groups: int
    """Key-value heads that stay."""
    loss: float
    """What the others cost when they went, one after the other."""


def ways_of(
    heads: int, groups: int, path: Sequence[int], costs: Sequence[float]
) -> list[LayerChoice]:
    """Every way a layer can keep heads, from none to all; `path` has the first to go first.

    Heads that share keys and values go as whole groups or the same number in each: of every group
    the last on the path stay, and the groups whose heads are last.

    >>> [way.heads for way in ways_of(2, 2, [1, 0], [0.1, 0.5])]
    [(), (0,), (0, 1)]
    """
    when, price = np.empty(heads), np.empty(heads)
    when[list(path)], price[list(path)] = np.arange(heads), costs
    choices = [LayerChoice(heads=(), groups=0, loss=float(price.sum()))]
    if not heads:
        return choices
    size = heads // groups
    grid = when.reshape(groups, size)
    best = np.argsort(-grid, axis=1, kind="stable")  # (group, rank) -> head of the group
    for inside in range(1, size + 1):
        worth = np.take_along_axis(grid, best[:, :inside], axis=1).sum(1)
        order = np.argsort(-worth, kind="stable")
        for many in range(1, groups + 1):
            kept = sorted(int(g * size + h) for g in order[:many] for h in best[g, :inside])
            lost = float(price.sum() - price[kept].sum())
            choices.append(LayerChoice(heads=tuple(kept), groups=many, loss=max(lost, 0.0)))
    return choices


def all_ways(
    layout: Layout, paths: Mapping[Place, tuple[list[int], Any]], *, whole_groups: bool = False
) -> dict[Place, list[LayerChoice]]:
    """(stack, layer) -> its ways; with `whole_groups` those of paths over groups of heads."""
    choices: dict[Place, list[LayerChoice]] = {}
    for stack in layout.stacks:
        for layer, (heads, groups) in enumerate(zip(stack.heads, stack.groups, strict=True)):
            units = groups if whole_groups else heads
            path, costs = paths.get((stack.name, layer), (list(range(units)), np.zeros(units)))
            ways = ways_of(units, groups, path, costs)
            size = heads // max(units, 1)
            choices[stack.name, layer] = [
                replace(way, heads=tuple(u * size + h for u in way.heads for h in range(size)))
                for way in ways
            ]
    return choices


def mask_of(layout: Layout, chosen: Mapping[Place, LayerChoice]) -> Mask:
    """The mask of one way for each layer."""
    kept = {Head(*site, index) for site, way in chosen.items() for index in way.heads}
    return Mask(layout, frozenset(kept))


UNITS = 20_000
"""Units that a budget is counted in, where its costs are no small whole numbers."""


def knapsack(layers: Sequence[Sequence[tuple[float, float]]], limit: float) -> list[int] | None:
    """For each layer which of its ways (cost, loss) to take; None where even the least is too much.

    >>> knapsack([[(0, 9.0), (1, 5.0), (2, 0.0)], [(0, 4.0), (1, 1.0), (2, 0.0)]], 3)
    [2, 1]
    """
    whole = limit <= UNITS and all(float(cost).is_integer() for ways in layers for cost, _ in ways)
    unit = 1.0 if whole else limit / UNITS
    if limit < 0 or not unit:
        return None
    room = math.floor(limit / unit + 1e-9)
    used = [[_units(cost, unit) for cost, _ in ways] for ways in layers]
    best = np.zeros(room + 1)  # (units that may be used,) the least loss so far
    taken: list[np.ndarray] = []
    for ways, units in zip(layers, used, strict=True):
        after = np.full(room + 1, np.inf)
        choice = np.full(room + 1, -1)
        for number, (_, loss) in enumerate(ways):
            if units[number] > room:
                continue
            need = int(units[number])
            moved = np.concatenate([np.full(need, np.inf), best[: room + 1 - need]]) + loss
            better = moved < after
            after[better], choice[better] = moved[better], number
        best = after
        taken.append(choice)
    if not np.isfinite(best[room]):
        return None
    chosen, left = [], room
    for units, choice in zip(reversed(used), reversed(taken), strict=True):
        number = int(choice[left])
        chosen.append(number)
        left -= int(units[number])
    return chosen[::-1]


def _units(cost: float, unit: float) -> float:
    """Whole units, rounded up; what cannot be had has no end of them."""
    return math.inf if math.isinf(cost) else math.ceil(cost / unit - 1e-9)
