"""The heads with little weight times activation go: Wanda, structured (Wanda-SP).

Sun, Liu, Bair and Kolter, ICLR 2024; by heads as in An et al., AAAI 2024:

    s_h = ‖W_h‖ ‖z_h‖

with W_h a head's rows of the output projection and ‖z_h‖ the norm of its outputs over all tokens.
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
class Wanda:
    """Keep the heads with the largest weights times outputs."""

    needs: ClassVar = "calibration"
    ratio: ClassVar = "needed"

    def prepare(self, model: nn.Module | Layout, given: MethodInputs) -> Decide:
        """One pass over the rows, without gradients or labels."""
        from headcount.pruning.head_statistics import decide_by, head_sums

        sums = head_sums(as_model(model, "wanda"), given, "wanda")
        values = {
            key: layer.by_head(layer.rows).norm(dim=(1, 2))
            * (layer.by_head(layer.zz).sum(1) / layer.tokens).sqrt()
            for key, layer in sums.items()
        }
        return decide_by(as_layout(model), values, "wanda")
