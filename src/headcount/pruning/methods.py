"""The methods, by name; listing them imports nothing. A new one is one line here.

A method is prepared once, `method(model, **its own options)`, and gives a function that decides:
`decide(ratio, seed)` is the mask. What it measures (gradients, distances) is measured once and
serves every ratio and seed.
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
