"""Calibration data: the rows that methods, repairs and measurements read, as options."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headcount.base.errors import UsageError
from headcount.base.options import checked

COUNT = 1000
"""Inputs when no number is given, as in the paper."""
SAMPLES = 512
"""Calibration rows when no number is given."""


@dataclass(frozen=True, kw_only=True)
@checked
class Calibration:
    """Calibration rows: never those that are scored, where there are others."""

    rows: Any = field(default=None, metadata={"typed": Path, "names": "--calibration"})
    """A file of texts, one per line, or of conversations (JSON lines with `messages`), instead of
    the task's rows."""
    samples: int = field(default=SAMPLES, metadata={"names": "--calibration-samples"})
    """Calibration rows, drawn from the file or the train split; a list in Python is used whole."""
    tokens: int | None = field(default=None, metadata={"names": "--calibration-tokens"})
    """Tokens of the calibration rows in place of a number of rows: as many as reach it."""

    @property
    def of_file(self) -> int | None:
        """Rows that are drawn from a file; None where tokens are counted, from its beginning."""
        return self.samples if self.tokens is None else None

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise UsageError(f"There is at least one calibration row, not {self.samples}.")
        if self.tokens is not None and self.tokens < 1:
            raise UsageError(f"There is at least one calibration token, not {self.tokens}.")
        if self.tokens is not None and self.samples != SAMPLES:
            raise UsageError(
                "Calibration is counted in rows or in tokens: pass --calibration-samples or "
                "--calibration-tokens."
            )
        if isinstance(self.rows, Iterator):  # it can be gone through once
            object.__setattr__(self, "rows", list(self.rows))


@dataclass(frozen=True, kw_only=True)
@checked
class InputOptions:
    """Inputs without labels: lines of a file, texts of a task, or random tokens."""

    rows: Path | None = field(default=None, metadata={"names": "--calibration"})
    """Calibration texts: a file with one per line, or of conversations (JSON lines with
    `messages`)."""
    random: int | None = None
    """Use this many rows of random tokens; 1000 if no other inputs are given."""
    split: str | None = None
    """Split of the task that the inputs are taken from; dev by default."""
    samples: int | None = field(default=None, metadata={"names": "--calibration-samples"})
    """Number of inputs, sampled evenly over lengths; 1000 by default."""
    max_length: int = 128
    """Tokens per input; longer ones are truncated."""
    seed: int = 0
    """Seed of the sample, of random tokens and of everything else random."""

    def __post_init__(self) -> None:
        if self.rows is not None and self.random is not None:
            raise UsageError("Pass --calibration or --random, not both: inputs have one source.")
        if self.random is not None and self.random < 1:
            raise UsageError(f"The number of random rows is at least 1, not {self.random}.")
        if self.samples is not None and self.samples < 1:
            raise UsageError(f"The number of inputs is at least 1, not {self.samples}.")
        if self.max_length < 2:
            raise UsageError(f"max_length must be at least 2, not {self.max_length}.")

    @property
    def count(self) -> int:
        """Inputs to sample from, at least."""
        return self.random or self.samples or COUNT

    @property
    def most(self) -> int:
        """Inputs that are used, where there are as many."""
        return self.samples or self.count
