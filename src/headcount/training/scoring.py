"""Which rows are scored, and how: the options of every evaluation."""

from __future__ import annotations

from dataclasses import dataclass, field

from headcount.base.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """What is scored, on which sample, with which interval."""

    split: str | None = None
    """Which rows are scored; the task's dev split when left out."""
    limit: int | float | None = field(default=None, metadata={"typed": int})
    """Score a seeded sample of so many rows; in Python a share of them, too, such as 0.5."""
    seed: int = 0
    """Seed of the sample, of masked tokens and of the interval."""
    bootstrap: int = 1000
    """Bootstrap resamples behind the intervals; 0 for none."""
    max_length: int = 128
    """Tokens per row; longer rows are cut."""

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
