"""The step `recover`: output projections solved again (`recovery.py`), without training."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, ClassVar

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

    def __post_init__(self) -> None:
        if not self.ridge >= 0:
            raise UsageError(f"The ridge is not negative: {self.ridge}.")
        if self.tokens < 1:
            raise UsageError(f"A batch has at least one token, not {self.tokens}.")

    def solve(self, sums: NormalEquations, start: Tensor, layer: str) -> Tensor:
        """The new rows and bias of a projection that has those of `start`."""
        return sums.solve(start, self.ridge, layer)

    def apply(
        self, small: PreTrainedModel, full: PreTrainedModel, given: RepairInputs
    ) -> RepairReport:
        """Layer by layer, towards the full model's attention output."""
        from headcount.repair.recovery import few_tokens, recover_layers

        fits = recover_layers(small, full, given.calibration(), options=self)
        return RepairReport(
            details={"layers": [asdict(fit) for fit in fits]}, note=few_tokens(fits)
        )
