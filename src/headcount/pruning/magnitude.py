"""The heads with small weights go: no data needed.

Han, Pool, Tran and Dally, NeurIPS 2015, with a head as the unit: the norm of all its weights,

    s_h = (‖Q_h‖² + ‖K_h‖² + ‖V_h‖² + ‖W_h‖²)^½

K and V are those of its group where heads share them, and W_h its rows of the output projection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from headcount.base.options import checked
from headcount.pruning.methods import Decide, MethodInputs
from headcount.pruning.select import as_layout, as_model

if TYPE_CHECKING:
    from torch import Tensor, nn

    from headcount.heads import Layout
    from headcount.models.sites import Site


@dataclass(frozen=True, kw_only=True)
@checked
class Magnitude:
    """Keep the heads with the largest weights."""

    needs: ClassVar = "nothing"
    ratio: ClassVar = "needed"

    def prepare(self, model: nn.Module | Layout, given: MethodInputs) -> Decide:
        """Nothing is looked at but the weights."""
        from headcount.models.find import sites_of
        from headcount.pruning.head_statistics import decide_by

        bare = as_model(model, "magnitude")
        sites = [site for site in sites_of(bare) if site.heads]
        values = {(site.stack, site.layer): weight_norms(bare, site) for site in sites}
        return decide_by(as_layout(model), values, "magnitude")


def weight_norms(model: nn.Module, site: Site) -> Tensor:
    """(head,) the norm of everything that belongs to a head."""
    import torch

    from headcount.models.cut import rows_of
    from headcount.models.linear import weight_of

    module = model.get_submodule(site.path)
    fused = "grouped" if any(c == "query_key_value" for c, _ in site.projections) else "qkv"
    weights = [("q", weight_of(model.get_submodule(site.out)).detach().square().sum(1))]
    weights += [
        (
            fused if kind == "fused" else kind,
            weight_of(getattr(module, child)).detach().square().sum(0),
        )
        for child, kind in site.projections
    ]
    squares = [
        sum(
            float(
                sizes[rows_of(kind, [head], site.heads, site.groups, site.head_dim)].double().sum()
            )
            for kind, sizes in weights
        )
        for head in range(site.heads)
    ]
    return torch.tensor(squares, dtype=torch.float64).sqrt()
