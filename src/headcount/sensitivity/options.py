"""How importance is measured."""

from __future__ import annotations

from dataclasses import dataclass, field

from headcount.base.errors import UsageError
from headcount.base.names import did_you_mean
from headcount.base.options import checked

NORMALIZE = ("none", "l1", "l2")


@dataclass(frozen=True, kw_only=True)
@checked
class GradientOptions:
    """Which rows of a task are measured on, and how the scores are normalised."""

    normalize: str = "none"
    """Divide every score by its layer's norm: none, l1 or l2."""
    split: str | None = None
    """Which rows of the task; the train split when left out."""
    samples: int | None = field(default=1000, metadata={"names": "--calibration-samples"})
    """Measure on a seeded sample of this many rows of the task."""
    max_length: int = 128
    """Tokens per row; longer rows are truncated."""
    seed: int = 0
    """Seed of the sample and of masked tokens."""

    def __post_init__(self) -> None:
        require_norm(self.normalize)
        if self.samples is not None and self.samples < 1:
            raise UsageError(f"A number of rows is at least 1, not {self.samples}.")
        if self.max_length < 2:
            raise UsageError(f"max_length must be at least 2, not {self.max_length}.")


def require_norm(normalize: str) -> str:
    """The name of a normalisation, or a refusal with the nearest."""
    if normalize not in NORMALIZE:
        hint = did_you_mean(normalize, NORMALIZE)
        raise UsageError(f"Importance is normalised none, l1 or l2, not '{normalize}'.{hint}")
    return normalize
