"""The same number of key-value heads from every layer of a stack: what a plain config can say.

    level = level_for(layout, 135)         # the smallest uniform mask with at least 135 heads
    keep_uniform(scores, level)            # of every layer its best key-value heads, so many

Key-value heads go whole. Where all heads of a layer share one, heads go instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil

import numpy as np

from headcount.base.errors import UsageError
from headcount.base.text import short
from headcount.heads.choose import layer_scores
from headcount.heads.layout import Layout, Stack
from headcount.heads.mask import Mask
from headcount.heads.scores import Scores

Level = Mapping[str, tuple[int, int]]
"""stack -> (key-value heads of every layer, heads of each of them)."""


def levels(layout: Layout) -> list[Level]:
    """Every uniform way to keep heads, from the fewest, with one left in every layer.

    >>> levels(Layout((Stack("decoder", (6, 6), (2, 2), (1, 1)),)))
    [{'decoder': (1, 3)}, {'decoder': (2, 3)}]
    """
    units = {stack.name: _units(stack) for stack in layout.stacks if stack.heads}
    shares = sorted({Fraction(i, n) for n, _ in units.values() for i in range(1, n + 1)})
    return [
        {
            name: (ceil(n * share), size) if size else (1, ceil(n * share))
            for name, (n, size) in units.items()
        }
        for share in shares
    ]


def _units(stack: Stack) -> tuple[int, int]:
    """How many parts of a layer may go, and the heads of each; 0 where the parts are heads."""
    shapes = sorted(set(zip(stack.heads, stack.groups, strict=True)))
    if len(shapes) > 1 or shapes[0][0] == 0:
        raise UsageError(
            f"The layers of the {stack.name} have different numbers of heads "
            f"({short(list(stack.heads))}), so the same number cannot go from each: start from "
            "the model that has all heads, or leave --uniform out."
        )
    heads, groups = shapes[0]
    return (heads, 0) if groups == 1 else (groups, heads // groups)


def total_of(layout: Layout, level: Level) -> int:
    """Heads that stay."""
    return sum(
        len(layout[name].heads) * groups * inside for name, (groups, inside) in level.items()
    )


def level_for(layout: Layout, count: int) -> Level:
    """The smallest level with at least `count` heads."""
    ways = levels(layout)
    enough = (level for level in ways if total_of(layout, level) >= count)
    return next(enough, ways[-1] if ways else {})


def kept_at(layout: Layout, ratio: float, *, uniform: bool) -> int:
    """How many heads stay when this share of them goes."""
    count = layout.kept_at(ratio)
    return total_of(layout, level_for(layout, count)) if uniform else count


def keep_uniform(scores: Scores, level: Level) -> Mask:
    """Of every layer the best key-value heads by summed score, and the best heads of these."""
    scores.ranked()  # refuses scores that are not numbers
    rows = layer_scores(scores)
    kept = [
        rows[name, layer].heads[index]
        for name, (groups, inside) in level.items()
        for layer in range(len(scores.layout[name].heads))
        for index in rows[name, layer].best(groups, inside)[1]
    ]
    return Mask.of(scores.layout, kept)


def is_uniform(mask: Mask) -> bool:
    """Whether every layer of a stack keeps as many key-value heads, and as many heads of each."""
    for stack in mask.layout.stacks:
        shapes = set()
        for layer, (heads, groups) in enumerate(zip(stack.heads, stack.groups, strict=True)):
            if not heads:
                shapes.add((0,))
                continue
            kept = np.bincount(
                [head * groups // heads for head in mask.indices(stack.name, layer)],
                minlength=groups,
            )
            shapes.add(tuple(sorted(kept[kept > 0].tolist())) or (0,))
        if len(shapes) > 1 or any(len(set(shape)) > 1 for shape in shapes):
            return False
    return True
