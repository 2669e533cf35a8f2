"""Inputs that are looked at without labels."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from headcount.base.errors import UsageError

COUNT = 1000
"""Inputs when nobody says how many, as in the paper."""


@dataclass(frozen=True, kw_only=True)
class InputOptions:
    """What a model reads while it is looked at: lines of a file, a task's texts, or chance."""

    rows: Path | None = field(default=None, metadata={"names": "--calibration"})
    """Use the lines of a text file."""
    random: int | None = None
    """Use so many rows of random tokens: 1000 when nothing else is named."""
    split: str | None = None
    """Which rows of the task are inputs; its dev split when left out."""
    samples: int | None = field(default=None, metadata={"names": "--calibration-samples"})
    """Look at a sample of so many inputs, even over lengths; 1000 when left out."""
    max_length: int = 128
    """Tokens per input; longer ones are cut."""
    seed: int = 0
    """Seed of the sample, of random tokens and of everything else that is drawn."""

    def __post_init__(self) -> None:
        if self.rows is not None and self.random is not None:
            raise UsageError(
                "Pass --calibration or --random, not both: inputs come from one place."
            )
        if self.random is not None and self.random < 1:
            raise UsageError(f"At least one random row is made, not {self.random}.")
        if self.samples is not None and self.samples < 1:
            raise UsageError(f"At least one input is looked at, not {self.samples}.")
        if self.max_length < 2:
            raise UsageError(f"max_length must be at least 2, not {self.max_length}.")

    @property
    def count(self) -> int:
        """Inputs to have at hand."""
        return self.random or self.samples or COUNT

    @property
    def most(self) -> int:
        """Inputs that are looked at, where there are as many."""
        return self.samples or self.count
