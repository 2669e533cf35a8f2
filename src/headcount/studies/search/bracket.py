"""The fewest heads that are enough, by bisection over head counts; nothing here knows of models."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headcount.heads import Layout

BEYOND = (2, 4, 8)
"""Larger prunings looked at past the boundary: scores need not fall steadily."""


def fewest(counts: Sequence[int], accepts: Callable[[int], bool]) -> int | None:
    """The smallest of these ascending numbers of heads that is accepted; None where none is.

    Bisection finds the boundary of a score that falls steadily; a few larger prunings are tried
    beyond it, and where one is accepted, bisection goes on from there.

    >>> fewest(range(72), lambda kept: kept >= 41)
    41
    >>> fewest(range(72), lambda kept: kept in (37, 38) or kept >= 41)
    37
    """
    rejected: set[int] = {-1}

    def enough(index: int) -> bool:
        smallest = accepts(counts[index])
        if not smallest:
            rejected.add(index)
        return smallest

    def bisect(accepted: int) -> int:
        below = max(index for index in rejected if index < accepted)
        while accepted - below > 1:
            middle = (below + accepted) // 2
            below, accepted = (below, middle) if enough(middle) else (middle, accepted)
        return accepted

    index = bisect(len(counts))
    for step in BEYOND:
        if index >= step and enough(index - step):
            index = bisect(index - step)
            break
    return counts[index] if index < len(counts) else None


def about_sizes(counts: Sequence[int]) -> int:
    """About how many of these numbers `fewest` asks for.

    >>> about_sizes(range(72))
    10
    """
    return min(len(counts), len(counts).bit_length() + len(BEYOND))


def head_counts(layout: Layout, leave: int = 0) -> list[int]:
    """Every number of heads below all that can stay, ascending, with `leave` in every layer.

    Heads that share keys and values go as whole groups or the same number in each.

    >>> head_counts(Layout.of(encoder=[2, 2]))
    [0, 1, 2, 3]
    """
    sums = {0}
    for stack in layout.stacks:
        for heads, groups in zip(stack.heads, stack.groups, strict=True):
            ways = layer_counts(heads, groups, leave)
            sums = {done + way for done in sums for way in ways}
    return sorted(sums - {len(layout)})


def layer_counts(heads: int, groups: int, leave: int = 0) -> list[int]:
    """Every number of heads that one layer can keep, ascending.

    >>> layer_counts(9, 3)
    [0, 1, 2, 3, 4, 6, 9]
    """
    size = heads // groups if groups else 0
    ways = {inside * many for inside in range(1, size + 1) for many in range(1, groups + 1)}
    return sorted(way for way in ways | {0} if way >= min(leave, heads))
