"""The ways a layer can keep heads, each with its loss along the surgeon's path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    layout: Layout, paths: Mapping[Place, tuple[list[int], Any]]
) -> dict[Place, list[LayerChoice]]:
    """(stack, layer) -> its ways."""
    choices: dict[Place, list[LayerChoice]] = {}
    for stack in layout.stacks:
        for layer, (heads, groups) in enumerate(zip(stack.heads, stack.groups, strict=True)):
            path, costs = paths.get((stack.name, layer), (list(range(heads)), np.zeros(heads)))
            choices[stack.name, layer] = ways_of(heads, groups, path, costs)
    return choices


def mask_of(layout: Layout, chosen: Mapping[Place, LayerChoice]) -> Mask:
    """The mask of one way for each layer."""
    kept = {Head(*site, index) for site, way in chosen.items() for index in way.heads}
    return Mask(layout, frozenset(kept))
