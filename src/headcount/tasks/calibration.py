"""What methods and recovery may look at before and after a cut."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headcount.base.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Rows to look at: never those that are scored, where there are others."""

    inputs: Any = field(default=None, metadata={"typed": Path})
    """A file of texts, one on each line, instead of the task's rows."""
    samples: int = 512
    """Rows of the train split that methods and recovery look at."""

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise UsageError(f"At least one row is looked at, not {self.samples}.")
        if isinstance(self.inputs, Iterator):  # it can be gone through once
            object.__setattr__(self, "inputs", list(self.inputs))
