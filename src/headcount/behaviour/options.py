"""Options of `headcount roles`: what is measured beside roles."""

from __future__ import annotations

from dataclasses import dataclass

from headcount.base.errors import UsageError
from headcount.base.options import checked


@dataclass(frozen=True, kw_only=True)
@checked
class RoleOptions:
    """What else is measured of every head, and how much of it is kept."""

    examples: int = 3
    """Example rows kept for each head, from where it is weakest to where it is strongest; 0 for
    none."""
    ridge: float = 1e-3
    """Ridge of the replaceable share and of the repair, as a share of the mean diagonal."""
    time: bool = False
    """Time the heads of every layer shape, too: milliseconds."""
    alone: bool = False
    """Score the task without each head alone, before and after repair: about one pass over the
    scored rows for every head."""
    limit: int | None = None
    """Score a seeded sample of this many rows (with --alone)."""

    def __post_init__(self) -> None:
        if self.examples < 0:
            raise UsageError(f"A number of examples is not negative: {self.examples}.")
        if not self.ridge > 0:
            raise UsageError(f"The ridge of the replaceable share is above 0, not {self.ridge}.")
        if self.limit is not None and self.limit < 1:
            raise UsageError(f"A number of rows is at least 1, not {self.limit}.")
        if self.limit is not None and not self.alone:
            raise UsageError("--limit is of the rows that --alone scores: pass both, or neither.")
