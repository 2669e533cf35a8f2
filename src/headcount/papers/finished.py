"""What is there of a scale: the finished runs of every group, with their records.

found = PaperRuns(plan, "reproduce/pocket")
found.scores("random", "task", "ratio")      # {("cola", 0.5): {seed: score}}
found.runs("gates", method="straight-through")
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headcount.base.files import expanded
from headcount.runs.products import product_of, scored_part
from headcount.runs.record import FILE
from headcount.runs.run import Run
from headcount.studies.ledger import Ledger
from headcount.studies.plan import Cell, Plan

if TYPE_CHECKING:
    from headcount.likeness.result import Redundancy


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """One run of a group that is done."""

    cell: Cell
    folder: Path
    record: Mapping[str, Any]

    @property
    def run(self) -> Run:
        """What was asked."""
        return self.cell.run

    @property
    def seed(self) -> int:
        """The run's seed."""
        return self.run.seed

    @property
    def score(self) -> float:
        """What the model scored in the end; not a number without a score."""
        part = scored_part(self.record)
        value = None if part is None else part["score"]
        return math.nan if value is None else float(value)

    @property
    def metric(self) -> str:
        """What it was scored by."""
        part = scored_part(self.record)
        return "" if part is None else str(part["metric"])

    @property
    def rows(self) -> int:
        """How many rows were scored."""
        part = scored_part(self.record)
        return 0 if part is None else int(part["n"])

    @property
    def sparsity(self) -> float:
        """The share of heads that went."""
        heads = self.record["heads"]
        return 1 - heads["after"] / heads["before"]

    def at(self, name: str) -> Any:
        """The value of an axis, or the run's task or seed where that is no axis."""
        if name in self.cell.axes:
            return self.cell.axes[name]
        return {"task": self.run.task, "seed": self.run.seed}.get(name)

    def redundancy(self) -> Redundancy:
        """The matrices of a run that measured some."""
        from headcount.likeness.result import load_redundancy

        return load_redundancy(product_of(self.run, self.folder))


class PaperRuns:
    """The runs of a scale's plan that are done, by group."""

    def __init__(self, plan: Plan, folder: str | Path) -> None:
        self.plan, self.folder = plan, expanded(folder)
        self.ledger = Ledger(self.folder)

    @cached_property
    def cells(self) -> dict[str, list[Cell]]:
        """Group -> the runs that it asks for."""
        found: dict[str, list[Cell]] = {}
        for cell in self.plan.cells:
            found.setdefault(cell.group, []).append(cell)
        return found

    @cached_property
    def done(self) -> frozenset[str]:
        """Keys of the runs that are done."""
        states = self.ledger.states([cell.key for cell in self.plan.cells])
        return frozenset(key for key, state in states.items() if state.name == "done")

    def count(self, groups: Iterable[str]) -> tuple[int, int]:
        """(how many runs of some groups are done, how many there are)."""
        cells = [cell for name in groups for cell in self.cells.get(name, [])]
        return sum(cell.key in self.done for cell in cells), len(cells)

    def is_whole(self, groups: Iterable[str]) -> bool:
        """Whether every one of these groups is there, and all its runs are done."""
        names = list(groups)
        done, total = self.count(names)
        return all(self.cells.get(name) for name in names) and done == total

    def runs(self, group: str, **wanted: Any) -> list[FinishedRun]:
        """The finished runs of a group whose axes have these values."""
        found = [
            FinishedRun(cell, self.ledger.folder_of(cell.key), self._record(cell.key))
            for cell in self.cells.get(group, [])
            if cell.key in self.done
        ]
        return [
            each for each in found if all(each.at(name) == value for name, value in wanted.items())
        ]

    def scores(self, group: str, *axes: str, **wanted: Any) -> dict[Any, dict[int, float]]:
        """Values of the axes (a tuple, or the value of one) -> seed -> score."""
        found: dict[Any, dict[int, float]] = {}
        for each in self.runs(group, **wanted):
            key = tuple(each.at(name) for name in axes)
            found.setdefault(key[0] if len(axes) == 1 else key, {})[each.seed] = each.score
        return found

    def path_of(self, finished: FinishedRun) -> Path:
        """The file of a run's record."""
        return finished.folder / FILE

    def _record(self, key: str) -> Mapping[str, Any]:
        if key not in self._records:
            self._records[key] = self.ledger.record(key)
        return self._records[key]

    @cached_property
    def judged(self) -> dict[str, Any]:
        """Claims that were judged by these runs, by code: several items bear on one."""
        return {}

    @cached_property
    def _records(self) -> dict[str, Mapping[str, Any]]:
        return {}
