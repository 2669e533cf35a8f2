"""The methods, by name; listing them imports nothing. A new one is one line here.

A method is prepared once, `method(model, **its own options)`, and gives a function that decides:
`decide(ratio, seed)` is the mask. What it measures (gradients, distances) is measured once and
serves every ratio and seed. Methods that train (the room `learned`, above this one; a name is no
import) do so for every ratio and seed anew, and have the trained weights as well.
"""

from __future__ import annotations

from collections.abc import Callable

from headcount.heads import Mask
from headcount.registry import Registry

Decide = Callable[[float | None, int], Mask]
"""(share of heads to remove, seed) -> the heads that stay."""

METHODS = Registry("method")
METHODS.add(
    "random",
    "headcount.pruning.random:random",
    "Heads drawn at random, over the model, a stack, or each layer.",
)
METHODS.add(
    "pattern",
    "headcount.pruning.pattern:pattern",
    "A number of heads for each layer (777322) or component (14,31,30).",
)
METHODS.add(
    "layers",
    "headcount.pruning.layers:layers",
    "All heads of whole layers: top:3, bottom:3, middle:4, even, odd.",
)
METHODS.add(
    "cluster",
    "headcount.pruning.cluster:cluster",
    "One head of each cluster of like heads; needs no data.",
)
METHODS.add(
    "importance",
    "headcount.pruning.importance:importance",
    "The heads the loss feels least, in one shot or step by step.",
)
METHODS.add(
    "surgeon",
    "headcount.pruning.surgeon:surgeon",
    "The heads whose loss the others make up for best, by second order.",
)
METHODS.add(
    "meta",
    "headcount.pruning.meta:meta",
    "The best of every layer by a scorer of attention maps; needs no labels.",
)
METHODS.add(
    "straight-through",
    "headcount.learned.straight:straight_through",
    "Trained: step gates with a coarse gradient, weights beside them.",
)
METHODS.add(
    "hard-concrete",
    "headcount.learned.concrete:hard_concrete",
    "Trained: L0 gates, drawn in every step.",
)
METHODS.add(
    "subset",
    "headcount.learned.subset:subset",
    "Trained: exactly the asked number of heads in every step, by Gumbel top-k.",
)
