"""The best heads by score, exactly as many as asked, in a way that can be removed.

Heads that share keys and values (grouped-query attention) go as whole groups or the same number
in each group that stays, so there a layer cannot keep every number of heads: what each layer
keeps is then found by dynamic programming over layers, still exact in total and best in score.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from headcount.base.errors import UsageError
from headcount.heads import Head, Layout, Mask, Scores

Place = tuple[str, int]
"""(stack, layer)."""
NONE = -np.inf


def random_mask(layout: Layout, ratio: float, seed: int) -> Mask:
    """Heads drawn at random over the whole model, `ratio` of them removed.

    >>> random_mask(Layout.of(encoder=[12] * 12), 0.5, seed=0).sparsity
    0.5
    """
    return keep_best(random_scores(layout, np.random.default_rng(seed)), layout.kept_at(ratio))


def random_groups(layout: Layout, ratio: float, seed: int) -> Mask:
    """Key-value heads drawn at random over the whole model, `ratio` of them removed with all heads.

    >>> random_groups(Layout.of(encoder=[12] * 12), 0.5, seed=0).sparsity
    0.5
    """
    units = [
        [Head(stack.name, layer, head) for head in range(at * size, (at + 1) * size)]
        for stack in layout.stacks
        for layer, (heads, groups) in enumerate(zip(stack.heads, stack.groups, strict=True))
        for size in ([heads // groups] if groups else [])
        for at in range(groups)
    ]
    kept = Layout.of(encoder=[len(units)]).kept_at(ratio)
    order = np.random.default_rng(seed).permutation(len(units))
    return Mask.of(layout, [head for unit in order[:kept] for head in units[unit]])


def random_scores(layout: Layout, generator: np.random.Generator) -> Scores:
    """A score for every head, drawn evenly between 0 and 1."""
    return Scores(layout, tuple(generator.random(len(layout))))


@dataclass(frozen=True)
class LayerScores:
    """One layer: its heads, their scores, and its key-value groups."""

    heads: tuple[Head, ...]
    values: np.ndarray
    groups: int

    def options(self, leave: int) -> dict[int, tuple[float, list[int]]]:
        """Heads kept -> (their summed score, which), the best way for every number there is."""
        ways: dict[int, tuple[float, list[int]]] = {}
        count = len(self.heads)
        if not leave or not count:
            ways[0] = (0.0, [])
        if not count:
            return ways
        for inside in range(1, count // self.groups + 1):
            for many in range(1, self.groups + 1):
                kept = inside * many
                if kept >= min(leave, count):
                    way = self.best(many, inside)
                    ways[kept] = max(ways.get(kept, (NONE, [])), way, key=lambda item: item[0])
        return ways

    def best(self, many: int, inside: int) -> tuple[float, list[int]]:
        """The best `inside` heads of the `many` best groups: their summed score, and which."""
        size = len(self.heads) // self.groups
        grid = self.values.reshape(self.groups, size)
        order = np.argsort(-grid, axis=1, kind="stable")[:, :inside]  # (group, rank) -> its head
        worth = np.take_along_axis(grid, order, axis=1).sum(1)
        groups = np.argsort(-worth, kind="stable")[:many]
        return float(worth[groups].sum()), [int(g * size + h) for g in groups for h in order[g]]


def keep_best(scores: Scores, count: int, *, leave: int = 0) -> Mask:
    """The mask of the `count` best heads with at least `leave` in every layer."""
    everything = [(stack, layer) for stack, layer, _ in scores.layout.layers()]
    return keep_in_parts(scores, [(everything, count)], leave=leave)


def keep_in_parts(
    scores: Scores, parts: Iterable[tuple[Sequence[Place], int]], *, leave: int = 0
) -> Mask:
    """The best heads of every part (layers, heads to keep); layers in no part keep all."""
    layout = scores.layout
    scores.ranked()  # refuses scores that are not numbers
    kept, layers = set(layout), layer_scores(scores)
    for places, count in parts:
        rows = [layers[stack, layer] for stack, layer in places]
        kept -= {head for row in rows for head in row.heads}
        kept.update(_choose(rows, count, leave))
    return Mask(layout, frozenset(kept))


def layer_scores(scores: Scores) -> dict[Place, LayerScores]:
    """The scores of every layer."""
    rows: dict[Place, list[tuple[Head, float]]] = {}
    for head, value in scores.items():
        rows.setdefault((head.stack, head.layer), []).append((head, value))
    return {
        (stack.name, layer): LayerScores(
            tuple(head for head, _ in rows.get((stack.name, layer), [])),
            np.array([value for _, value in rows.get((stack.name, layer), [])]),
            groups,
        )
        for stack in scores.layout.stacks
        for layer, groups in enumerate(stack.groups)
    }


def _choose(rows: list[LayerScores], count: int, leave: int) -> list[Head]:
    total = sum(len(row.heads) for row in rows)
    if not 0 <= count <= total:
        raise UsageError(f"Cannot keep {count} of {total} heads.")
    least = sum(min(leave, len(row.heads)) for row in rows)
    if count < least:
        raise UsageError(
            f"Keeping {count} of {total} heads cannot leave {leave} in every layer: that takes "
            f"{least}, a ratio of at most {1 - least / total:.4f}."
        )
    if all(row.groups == len(row.heads) for row in rows):
        return _plain(rows, count, leave)
    return _grouped(rows, count, leave)


def _plain(rows: list[LayerScores], count: int, leave: int) -> list[Head]:
    """The best `leave` of every layer, then the best of all others; ties by position."""
    first: list[Head] = []
    rest: list[tuple[float, Head]] = []
    for row in rows:
        order = np.argsort(row.values, kind="stable")[::-1]
        first += [row.heads[i] for i in order[:leave]]
        rest += [(float(row.values[i]), row.heads[i]) for i in sorted(order[leave:])]
    # as `Scores.keep_best`: of equal scores the later head stays
    rest = sorted(rest, key=lambda item: item[0])
    more = count - len(first)
    return first + [head for _, head in rest[len(rest) - more :]]


def _grouped(rows: list[LayerScores], count: int, leave: int) -> list[Head]:
    """Dynamic programming: the best summed score for every number of heads, layer by layer."""
    options = [row.options(leave) for row in rows]
    total = sum(len(row.heads) for row in rows)
    best = np.full(total + 1, NONE)
    best[0] = 0.0
    chosen: list[np.ndarray] = []
    for ways in options:
        after = np.full(total + 1, NONE)
        choice = np.full(total + 1, -1)
        for kept, (value, _) in sorted(ways.items()):
            moved = np.concatenate([np.full(kept, NONE), best[: total + 1 - kept]]) + value
            better = moved > after
            after[better], choice[better] = moved[better], kept
        best = after
        chosen.append(choice)
    if best[count] == NONE:
        near = np.flatnonzero(best > NONE)
        below, above = near[near < count], near[near > count]
        possible = " or ".join(str(n) for n in [*below[-1:], *above[:1]])
        raise UsageError(
            f"Cannot keep exactly {count} of {total} heads: heads that share keys and values go "
            f"as whole groups or the same number in each. It could keep {possible}."
        )
    kept_heads: list[Head] = []
    for row, ways, choice in zip(rows[::-1], options[::-1], chosen[::-1], strict=True):
        kept = int(choice[count])
        kept_heads += [row.heads[i] for i in ways[kept][1]]
        count -= kept
    return kept_heads
