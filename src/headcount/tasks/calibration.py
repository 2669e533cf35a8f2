"""Calibration data: what methods and repairs may see of a task, before and after heads go."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headcount.base.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Calibration rows: never those that are scored, where there are others."""

    rows: Any = field(default=None, metadata={"typed": Path, "names": "--calibration"})
    """A file of texts, one on each line, instead of the task's rows."""
    samples: int = field(default=512, metadata={"names": "--calibration-samples"})
    """Calibration rows, drawn from the train split."""

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise UsageError(f"There is at least one calibration row, not {self.samples}.")
        if isinstance(self.rows, Iterator):  # it can be gone through once
            object.__setattr__(self, "rows", list(self.rows))
