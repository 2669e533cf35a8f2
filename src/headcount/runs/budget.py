"""What a pruning cost in data: rows that were looked at, and rows and steps of training.

Methods are compared at equal budgets, so every record says its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from torch import Tensor

from headcount.runs.prune_result import DataBudget
from headcount.tasks.encoding import EncodedRows
from headcount.training.options import TrainOptions


@dataclass
class Budget:
    """Rows and steps, added up as a pruning goes on."""

    measured: int = 0
    """Rows that a method or recovery looked at without training, each as often as it did."""
    examples: int = 0
    """Rows trained on, each as often as it was."""
    steps: int = 0
    """Steps of the optimizer."""
    rows: int = 0
    """Different rows in the training data."""

    def train(self, *, examples: int, steps: int, rows: int) -> None:
        """So much training more."""
        self.examples += examples
        self.steps += steps
        self.rows = max(self.rows, rows)

    def summary(self) -> DataBudget:
        """As a record has it, with epochs."""
        return DataBudget(
            epochs=round(self.examples / self.rows, 3) if self.rows else 0.0,
            examples=self.examples,
            steps=self.steps,
            examples_measured=self.measured,
        )


@dataclass(frozen=True, eq=False)
class CountedRows(EncodedRows):
    """Rows that count how often they are looked at."""

    budget: Budget = field(default_factory=Budget)

    @classmethod
    def of(cls, rows: EncodedRows, budget: Budget) -> CountedRows:
        """The same rows, counted into `budget`."""
        fields: dict[str, Any] = vars(rows) | {"budget": budget}
        return cls(**fields)

    def batches(
        self, tokens: int = 4096, rows: int = 1024
    ) -> Iterator[tuple[np.ndarray, dict[str, Tensor]]]:
        """The batches, counted as they go out."""
        for numbers, batch in super().batches(tokens, rows):
            numbered = numbers if self.examples is None else self.examples[numbers]
            self.budget.measured += len(np.unique(numbered))
            yield numbers, batch


def together(first: TrainOptions, second: TrainOptions | None) -> TrainOptions:
    """One training as long as two: for what is compared with a method that trains twice."""
    if second is None:
        return first
    if first.steps is None or second.steps is None:
        return replace(second, epochs=first.epochs + second.epochs)
    return replace(second, steps=first.steps + second.steps)
