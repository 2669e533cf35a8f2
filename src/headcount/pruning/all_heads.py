"""No cut: all heads stay. What the same repair does to the whole model, for comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from headcount.heads import Layout, Mask
from headcount.pruning.methods import Decide, Decision, MethodInputs
from headcount.pruning.select import as_layout

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, kw_only=True)
class AllHeads:
    """Keep every head."""

    needs: ClassVar = "nothing"
    ratio: ClassVar = "none"

    def prepare(self, model: nn.Module | Layout, given: MethodInputs) -> Decide:
        """Nothing is looked at."""
        decision = Decision(mask=Mask.full(as_layout(model)))
        return lambda ratio, seed: decision
