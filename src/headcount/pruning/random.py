"""Heads drawn at random (B1, B3): over the whole model, a stack, or each layer.

On the weak link between importance and prunability (EMNLP 2020). `leave=1` leaves a head in every
layer; without a ratio it leaves exactly that, the paper's 87 %.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headcount.errors import UsageError
from headcount.heads import Mask, Scores
from headcount.pruning.choose import keep_in_parts
from headcount.pruning.counts import kept_in, parts_of, require_ratio, share_out, size_of
from headcount.pruning.methods import Decide
from headcount.pruning.select import as_layout


def random(
    model: Any, *, within: str = "model", stack: str | None = None, leave: int = 0
) -> Decide:
    """A draw of heads for every seed.

    >>> from headcount.heads import Layout
    >>> decide = random(Layout.of(encoder=[12] * 12))
    >>> len(decide(0.5, 0)), decide(0.5, 0) == decide(0.5, 0), decide(0.5, 0) == decide(0.5, 1)
    (72, True, False)
    >>> random(Layout.of(encoder=[8] * 6), leave=1)(None, 0).pattern
    '111111'
    """
    layout = as_layout(model)
    parts = parts_of(layout, within, stack)
    everywhere = [place for part in parts for place in part]
    if leave < 0:
        raise UsageError(f"The number of heads left in every layer is not negative: {leave}.")

    def decide(ratio: float | None, seed: int) -> Mask:
        generator = np.random.default_rng(seed)
        scores = Scores(layout, tuple(generator.random(len(layout))))
        if ratio is None and leave:
            chosen = [([place], min(leave, size_of(layout, [place]))) for place in everywhere]
            return keep_in_parts(scores, chosen, leave=leave)
        total = kept_in(layout, everywhere, require_ratio("random", ratio))
        sizes = [size_of(layout, part) for part in parts]
        counts = share_out(sizes, total, generator.permutation(len(parts)).tolist())
        return keep_in_parts(scores, zip(parts, counts, strict=True), leave=leave)

    return decide
