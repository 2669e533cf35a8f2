"""Heads drawn at random: over the whole model, a stack, or each layer.

On the weak link between importance and prunability (EMNLP 2020), §3.2, Table 1. `leave=1` leaves a
head in every layer; without a ratio it leaves exactly that, the paper's 87 %.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from headcount.base.errors import UsageError
from headcount.base.options import checked
from headcount.heads import Layout
from headcount.heads.choose import keep_in_parts, random_scores
from headcount.pruning.counts import kept_in, parts_of, require_ratio, share_out, size_of
from headcount.pruning.methods import Decide, Decision, MethodInputs
from headcount.pruning.select import as_layout

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, kw_only=True)
@checked
class Random:
    """A draw of heads for every seed.

    >>> from headcount.heads import Layout
    >>> decide = Random().prepare(Layout.of(encoder=[12] * 12), MethodInputs())
    >>> len(decide(0.5, 0).mask), decide(0.5, 0).mask == decide(0.5, 1).mask
    (72, False)
    >>> Random(leave=1).prepare(Layout.of(encoder=[8] * 6), MethodInputs())(None, 0).mask.pattern
    '111111'
    """

    needs: ClassVar = "nothing"
    ratio: ClassVar = "needed"

    within: Literal["model", "stack", "layer"] = "model"
    """Draw over the model, within each stack, or within each layer."""
    stack: str | None = None
    """Prune this stack only: encoder, cross or decoder."""
    leave: int = 0
    """Heads left in every layer; without a ratio exactly so many are left."""

    def __post_init__(self) -> None:
        if self.leave < 0:
            raise UsageError(
                f"The number of heads left in every layer is not negative: {self.leave}."
            )

    def prepare(self, model: nn.Module | Layout, given: MethodInputs) -> Decide:
        """Only the number of heads counts."""
        layout, leave = as_layout(model), self.leave
        parts = parts_of(layout, self.within, self.stack)
        layers = [layer for part in parts for layer in part]

        def decide(ratio: float | None, seed: int) -> Decision:
            generator = np.random.default_rng(seed)
            scores = random_scores(layout, generator)
            if ratio is None and leave:
                chosen = [([layer], min(leave, size_of(layout, [layer]))) for layer in layers]
                return Decision(mask=keep_in_parts(scores, chosen, leave=leave))
            total = kept_in(layout, layers, require_ratio("random", ratio))
            sizes = [size_of(layout, part) for part in parts]
            counts = share_out(sizes, total, generator.permutation(len(parts)).tolist())
            parted = zip(parts, counts, strict=True)
            return Decision(mask=keep_in_parts(scores, parted, leave=leave), scores=scores)

        return decide
