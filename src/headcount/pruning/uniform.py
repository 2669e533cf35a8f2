"""A method held to the same number of key-value heads in every layer, for configs without layers.

decide = uniform(Surgeon().prepare(model, given), layout, "surgeon")
decide(0.5, 0).mask, decide(0.5, 0).free       # of every layer as many; the free choice of as many
"""

from __future__ import annotations

from dataclasses import replace

from headcount.base.errors import UsageError
from headcount.heads import Layout, Scores
from headcount.heads.uniform import is_uniform, keep_uniform, level_for, total_of
from headcount.pruning.methods import Decide, Decision


def uniform(decide: Decide, layout: Layout, method: str) -> Decide:
    """The decisions of a method with as many heads in every layer of a stack.

    Of a ratio the smallest uniform number that removes no more. The heads of a layer are those
    with the best scores, or, where a method has none, those that stay longest as ratios rise.
    """

    def decided(ratio: float | None, seed: int) -> Decision:
        if ratio is None:
            free = decide(None, seed)
            if is_uniform(free.mask):
                return free
            ratio = free.mask.sparsity
        if ratio == 1:
            raise UsageError(
                "--uniform leaves a key-value head in every layer, so not all heads can go: take a "
                "ratio below 1."
            )
        level = level_for(layout, layout.kept_at(ratio))
        try:
            free = decide(1 - total_of(layout, level) / len(layout), seed)
        except UsageError as error:
            raise UsageError(
                f"The method '{method}' cannot be held to as many heads in every layer: {error}"
            ) from error
        if is_uniform(free.mask):
            return free
        scores = free.scores or endurance(decide, layout, seed)
        return replace(free, mask=keep_uniform(scores, level), free=free.mask)

    return decided


def endurance(decide: Decide, layout: Layout, seed: int) -> Scores:
    """In how many of all prunings, from one head to all, a head stays."""
    stays = dict.fromkeys(layout, 0.0)
    for count in range(1, len(layout)):
        try:
            mask = decide(1 - count / len(layout), seed).mask
        except UsageError:  # no such number, where heads share keys and values
            continue
        for head in mask:
            stays[head] += 1
    return Scores(layout, tuple(stays.values()))
