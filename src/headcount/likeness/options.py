"""How redundancy is measured and compared."""

from __future__ import annotations

from dataclasses import dataclass

from headcount.base.errors import UsageError
from headcount.base.options import checked
from headcount.likeness.names import check_names


@dataclass(frozen=True, kw_only=True)
@checked
class DistanceOptions:
    """Which distances, and how exactly."""

    distances: tuple[str, ...] = ("js", "dcor")
    """Which distances, or `all`; see `headcount ls distances`."""
    tolerance: float | None = None
    """Stop when every standard error is at most this."""

    def __post_init__(self) -> None:
        check_names(self.distances)
        if self.tolerance is not None and not self.tolerance > 0:
            raise UsageError(
                f"The tolerance of the standard error is above 0, not {self.tolerance}."
            )


@dataclass(frozen=True, kw_only=True)
@checked
class AgreementOptions:
    """How matrices of several files are compared."""

    clusters: int = 3
    """How many clusters of layers to make."""
    permutations: int = 999
    """Permutations of heads behind each p."""
    seed: int = 0
    """Seed of permutations and intervals."""
