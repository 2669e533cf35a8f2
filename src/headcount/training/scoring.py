"""The options of every evaluation: which rows are scored, and how."""

from __future__ import annotations

from dataclasses import dataclass, field

from headcount.base.errors import UsageError
from headcount.base.options import checked


@dataclass(frozen=True, kw_only=True)
@checked
class Scoring:
    """Rows to score, and the bootstrap of the intervals."""

    split: str | None = None
    """Split to score; the task's dev split by default."""
    limit: int | float | None = field(default=None, metadata={"typed": int})
    """Score a seeded sample of this many rows; in Python also a fraction, such as 0.5."""
    seed: int = 0
    """Seed of the sample, of masked tokens and of the interval."""
    bootstrap: int = 1000
    """Bootstrap resamples behind the intervals; 0 for none."""
    max_length: int = 128
    """Tokens per row; longer rows are truncated."""

    def __post_init__(self) -> None:
        if self.bootstrap < 0:
            raise UsageError(
                f"The number of bootstrap resamples is not negative: {self.bootstrap}."
            )
        if self.max_length < 2:
            raise UsageError(f"max_length must be at least 2, not {self.max_length}.")
        if isinstance(self.limit, float) and not 0 < self.limit <= 1:
            raise UsageError(f"A fraction of the rows is above 0 and at most 1, not {self.limit}.")
        if isinstance(self.limit, int) and self.limit < 1:
            raise UsageError(f"A number of rows is at least 1, not {self.limit}.")
