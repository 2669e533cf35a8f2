"""The step `recover`: output projections solved again (`recovery.py`), without training."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from headcount.base.errors import UsageError
from headcount.base.options import checked
from headcount.repair.repairs import RepairInputs, RepairNeed, RepairReport

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

    from headcount.repair.ridge import NormalEquations


@dataclass(frozen=True, kw_only=True)
@checked
class Recover:
    """Solve the output projections again, without training."""

    needs: ClassVar[RepairNeed] = "calibration"
    done: ClassVar[str] = "recovered"

    ridge: float = 1e-3
    """Weight of staying near the old weights, as a share of the mean diagonal."""
    tokens: int = 2048
    """Tokens of a batch."""
    target: Literal["output", "stream"] = "output"
    """The full model's attention output, or its stream: what drifted below is made up for."""
    feed_forward: bool = False
    """Solve the second matrix of each feed-forward part as well."""
    bias: bool = False
    """Give a bias to the output projections of attention that have none."""
    path_rank: int = 0
    """Rank of a linear path from attention's input to its output beside the kept heads; heads pay
    for it. With `choose` it is tried."""
    linear: bool = False
    """A linear map in place of attention where a layer has no heads. With `choose` it is tried."""
    scales: bool = False
    """One factor for each kept head instead of new weights: for very few rows."""
    choose: bool = False
    """Choose these on held-back calibration rows, or leave the model as it is."""
    hold_back: float = 0.15
    """Share of the calibration rows by which it is chosen."""

    def __post_init__(self) -> None:
        if not self.ridge >= 0:
            raise UsageError(f"The ridge is not negative: {self.ridge}.")
        if self.tokens < 1:
            raise UsageError(f"A batch has at least one token, not {self.tokens}.")
        if self.target not in ("output", "stream"):
            raise UsageError(f"The target is output or stream, not {self.target!r}.")
        if self.path_rank < 0:
            raise UsageError(f"The rank of a path is not negative: {self.path_rank}.")
        if self.scales and (self.path_rank or self.linear):
            raise UsageError("With factors for the heads alone there is no path: leave one out.")
        if not 0 < self.hold_back < 1:
            raise UsageError(
                f"The share of rows to hold back is above 0 and below 1, not {self.hold_back}."
            )

    def heads_paid(self, model: PreTrainedModel) -> int:
        """How many heads have as many weights as the paths of all layers."""
        from headcount.models.find import sites_of
        from headcount.models.sites import linear_sizes

        paid = 0.0
        for site in sites_of(model):
            paths = [*(f"{site.path}.{child}" for child, _ in site.projections), site.out]
            sizes = [linear_sizes(model.get_submodule(path)) or (0, 0) for path in paths]
            width, outputs = sizes[0][0], sizes[-1][1]
            path = min(self.path_rank * (width + outputs), width * outputs)
            paid += path * site.heads / max(sum(a * b for a, b in sizes), 1)
        return math.ceil(round(paid, 9))

    def solve(self, sums: NormalEquations, start: Tensor, layer: str) -> Tensor:
        """The new rows and bias of a projection that has those of `start`."""
        return sums.solve(start, self.ridge, layer)

    def apply(
        self, small: PreTrainedModel, full: PreTrainedModel, given: RepairInputs
    ) -> RepairReport:
        """Layer by layer, towards the full model's attention output."""
        from headcount.repair.choice import choose
        from headcount.repair.recovery import few_tokens, recover_layers

        if self.choose:
            choice = choose(small, full, given.calibration(), options=self, report=given.report)
            return RepairReport(details=choice.to_json(), note=choice.note)
        fits = recover_layers(small, full, given.calibration(), options=self, report=given.report)
        return RepairReport(
            details={"layers": [asdict(fit) for fit in fits]}, note=few_tokens(fits)
        )
