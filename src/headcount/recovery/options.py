"""How output projections are solved again."""

from __future__ import annotations

from dataclasses import dataclass

from headcount.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """Ridge least squares towards the full model's attention outputs."""

    ridge: float = 1e-3
    """Weight of staying near the old weights, as a share of the mean diagonal."""
    tokens: int = 2048
    """Tokens of a batch."""

    def __post_init__(self) -> None:
        if not self.ridge >= 0:
            raise UsageError(f"The ridge is not negative: {self.ridge}.")
        if self.tokens < 1:
            raise UsageError(f"A batch has at least one token, not {self.tokens}.")
