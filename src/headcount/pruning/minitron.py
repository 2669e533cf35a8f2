"""The heads with small outputs go: the activation score of Minitron.

Muralidharan et al., Compact Language Models via Pruning and Knowledge Distillation, NeurIPS 2024:

    s_h = mean over tokens of ‖z_h‖₂

with z_h a head's output in front of the output projection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from headcount.base.options import checked
from headcount.pruning.methods import Decide, MethodInputs
from headcount.pruning.select import as_layout, as_model

if TYPE_CHECKING:
    from torch import nn

    from headcount.heads import Layout


@dataclass(frozen=True, kw_only=True)
@checked
class Minitron:
    """Keep the heads with the largest outputs."""

    needs: ClassVar = "calibration"
    ratio: ClassVar = "needed"

    def prepare(self, model: nn.Module | Layout, given: MethodInputs) -> Decide:
        """One pass over the rows, without gradients or labels."""
        from headcount.pruning.head_statistics import decide_by, head_sums

        sums = head_sums(as_model(model, "minitron"), given, "minitron")
        values = {key: layer.norms / layer.tokens for key, layer in sums.items()}
        return decide_by(as_layout(model), values, "minitron")
