"""How many heads stay: one rounding rule for every method.

Of H heads, a ratio p keeps ⌈H (1 - p)⌉ and removes ⌊H p⌋ (`Layout.kept_at`): never more than was
asked for. Where a method prunes part by part (each stack, each layer), the total is the same: every
part keeps the whole heads of its exact share, and the heads left over go to the parts with the
largest remainders.
"""

from __future__ import annotations

from collections.abc import Sequence

from headcount.base.errors import UsageError
from headcount.base.names import unknown
from headcount.heads import Layout
from headcount.heads.choose import Place

WITHIN = ("model", "stack", "layer")


def parts_of(layout: Layout, within: str, stack: str | None = None) -> list[list[Place]]:
    """The layers that are pruned together: all, those of a stack, or each alone.

    >>> parts_of(Layout.of(encoder=[8, 8], decoder=[8]), "stack")
    [[('encoder', 0), ('encoder', 1)], [('decoder', 0)]]
    """
    if within not in WITHIN:
        says = f"Heads are pruned within model, stack or layer, not '{within}'"
        raise unknown(says, within, WITHIN, has=None)
    stacks = layout.stacks if stack is None else (layout[stack],)
    layers = [[(part.name, layer) for layer in range(len(part.heads))] for part in stacks]
    if within == "stack":
        return layers
    flat = [key for part in layers for key in part]
    return [flat] if within == "model" else [[key] for key in flat]


def kept_in(layout: Layout, places: Sequence[Place], ratio: float) -> int:
    """⌈H (1 - ratio)⌉ for the H heads of these layers."""
    return Layout.of(encoder=[size_of(layout, places)]).kept_at(ratio)


def size_of(layout: Layout, places: Sequence[Place]) -> int:
    """Heads in these layers."""
    return sum(layout[stack].heads[layer] for stack, layer in places)


def share_out(sizes: Sequence[int], total: int, order: Sequence[int] | None = None) -> list[int]:
    """`total` heads over parts in proportion to their sizes, by largest remainder.

    `order` says which of equal remainders comes first; the earlier part when left out.

    >>> share_out([12, 12, 12], 19)
    [7, 6, 6]
    """
    whole = sum(sizes)
    if not whole:
        return [0] * len(sizes)
    counts = [size * total // whole for size in sizes]
    rank = {part: at for at, part in enumerate(order or range(len(sizes)))}
    by_rest = sorted(range(len(sizes)), key=lambda i: (-(sizes[i] * total % whole), rank[i]))
    for part in by_rest[: total - sum(counts)]:
        counts[part] += 1
    return counts


def require_no_ratio(method: str, ratio: float | None) -> None:
    """Refuse a ratio where the method's own options say how many heads stay."""
    if ratio is not None:
        raise UsageError(
            f"The method '{method}' says itself how many heads stay: leave the ratio out."
        )


def require_ratio(method: str, ratio: float | None) -> float:
    """The ratio, which must be there."""
    if ratio is None:
        raise UsageError(f"The method '{method}' needs a ratio of heads to remove, 0 to 1.")
    return ratio
