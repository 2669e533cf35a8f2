"""The heads whose outputs vary little go: Fluctuation-based Adaptive Structured Pruning.

An, Zhao, Yu, Tang and Wang, AAAI 2024. With z_j the inputs of the output projection W,

    s_j = Var(z_j) ‖W_j‖²

standardised over the inputs of each layer, and a head's score is their mean. What FLAP adds
to a bias, the mean output of what is gone, is what recovery solves for.
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
class Flap:
    """Keep the heads whose outputs fluctuate most, compared within their layer."""

    needs: ClassVar = "calibration"
    ratio: ClassVar = "needed"

    def prepare(self, model: nn.Module | Layout, given: MethodInputs) -> Decide:
        """One pass over the rows, without gradients or labels."""
        from headcount.pruning.head_statistics import decide_by, head_sums

        sums = head_sums(as_model(model, "flap"), given, "flap")
        values = {}
        for key, layer in sums.items():
            s = layer.variances * layer.rows.square().sum(1)
            spread = s.std() if len(s) > 1 else s.new_ones(())
            values[key] = layer.by_head((s - s.mean()) / spread.clamp_min(1e-300)).mean(1)
        return decide_by(as_layout(model), values, "flap")
