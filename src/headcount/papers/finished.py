"""The finished runs of a scale, by group, and all that is read of their records.

finished = PaperRuns(plan, "reproduce/pocket")
finished.scores("random", "task", "ratio")      # {("cola", 0.5): {seed: score}}
finished.runs("gates", method="straight-through")
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from headcount.base.files import expanded
from headcount.heads import Layout, Mask, Scores
from headcount.runs.kinds.prune import Prune
from headcount.runs.products import product_of, scored_part
from headcount.runs.run import Run
from headcount.studies.ledger import Ledger
from headcount.studies.plan import Cell, Plan
from headcount.tasks.metrics import get_metric

if TYPE_CHECKING:
    from headcount.likeness.result import Redundancy
    from headcount.papers.claims import Verdict

Row: TypeAlias = Mapping[str, Any]
"""One row of a record."""


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """One run of a group that is done."""

    cell: Cell
    folder: Path
    record: Row

    @property
    def run(self) -> Run:
        """The run of the plan."""
        return self.cell.run

    def at(self, name: str) -> Any:
        """The value of an axis, or the run's task or seed where that is no axis."""
        if name in self.cell.axes:
            return self.cell.axes[name]
        return {"task": self.run.task, "seed": self.run.seed}.get(name)

    @property
    def seed(self) -> int:
        """The run's seed."""
        return self.run.seed

    @property
    def task(self) -> str:
        """The run's task."""
        return str(self.at("task"))

    @property
    def method(self) -> str:
        """The pruning method, be it an axis or not."""
        return str(self.at("method") or self.record["method"])

    @property
    def gradient(self) -> str:
        """What straight-through gates take for the gradient of the step."""
        return str(self.record["run"]["options"]["method"].get("coarse", ""))

    @property
    def ratio(self) -> float:
        """The share of heads that was to be removed, be it an axis or not; NaN for none."""
        ratio = self.at("ratio")
        ratio = self.record.get("ratio") if ratio is None else ratio
        return float(ratio) if isinstance(ratio, int | float) else math.nan

    @property
    def score(self) -> float:
        """What the model scored in the end; NaN without a score."""
        return _number(self._evaluation.get("score"))

    @property
    def score_before(self) -> float:
        """The score of the model as it was given."""
        return _number(self.record["scores"]["before"]["score"])

    @property
    def relative_score(self) -> float:
        """The score after pruning relative to that before: NaN where that is 0 or less.

        A score that is undefined after pruning, as one answer to all rows has no rank, is worth 0.
        """
        before, after = self.score_before, self.score
        if not before > 0:
            return math.nan
        if math.isnan(after):
            return 0.0
        return after / before if get_metric(self.metric).higher_is_better else before / after

    @property
    def accuracy(self) -> float:
        """The accuracy, where it is one of the run's scores."""
        score = (self._evaluation.get("scores") or {}).get("accuracy") or {}
        return _number(score.get("value"))

    @property
    def metric(self) -> str:
        """The metric of the score."""
        return str(self._evaluation.get("metric", ""))

    @property
    def rows(self) -> int:
        """How many rows were scored."""
        return int(self._evaluation.get("n", 0))

    @property
    def _evaluation(self) -> Row:
        return scored_part(self.record) or {}

    @property
    def heads(self) -> int:
        """How many heads there were."""
        return int(self.record["heads"]["before"])

    @property
    def heads_kept(self) -> int:
        """How many heads are left."""
        return int(self.record["heads"]["after"])

    @property
    def sparsity(self) -> float:
        """The share of heads that went."""
        return 1 - self.heads_kept / self.heads

    @cached_property
    def mask(self) -> Mask:
        """The heads that are left."""
        return Mask.from_json(self.record["mask"])

    @property
    def heads_left(self) -> dict[str, list[tuple[int, int]]]:
        """Stack -> (heads that stay, heads there were) for every layer."""
        kept = self.mask.counts()
        stacks = self.mask.layout.stacks
        return {
            stack.name: list(zip(kept[stack.name], stack.heads, strict=True)) for stack in stacks
        }

    @property
    def all_closed(self) -> bool:
        """Whether the training closed every gate."""
        return "all_closed" in self.record

    @property
    def gates(self) -> Row:
        """How often gates closed and reopened, and the gap between training and test gates."""
        return self.record.get("learned") or {}

    @property
    def gate_gap(self) -> float:
        """Score with training gates minus score with test gates."""
        return _number((self.gates.get("gap") or {}).get("gap"))

    @property
    def layout(self) -> Layout:
        """The heads of two checkpoints that were compared."""
        return Layout.from_json(self.record["layout"])

    @property
    def drift(self) -> Scores:
        """How far the attention of every head moved."""
        return self._by_head(self.record["drift"]["attention"])

    @property
    def layer_drift(self) -> list[Row]:
        """How far every layer moved."""
        return [
            {name: math.nan if value is None else value for name, value in layer.items()}
            for layer in self.record["drift"]["layers"]
        ]

    @property
    def weight_change(self) -> Row:
        """How far weights moved: by head, by layer, and how much layers differ."""
        return self.record["weight_change"]

    @property
    def pruned_by(self) -> Prune | None:
        """How the model that it starts from was pruned; None for all heads."""
        model = self.run.model
        return model.options_as(Prune) if isinstance(model, Run) and model.kind == "prune" else None

    @property
    def weight_change_of_heads(self) -> Scores:
        """How far the weights of every head moved."""
        return self._by_head({"encoder": self.weight_change["heads"]["encoder"]})

    @property
    def importance(self) -> dict[str, Scores]:
        """Task -> importance of every head."""
        return {task: self._by_head(values) for task, values in self.record["importance"].items()}

    @property
    def correlations(self) -> Mapping[str, Row]:
        """Task -> correlation of drift with importance."""
        return self.record["correlations"]

    @property
    def recall(self) -> Sequence[Row]:
        """By share of the pre-training score that is kept: how many of the task's heads are."""
        return self.record.get("recall") or []

    def _by_head(self, values: Mapping[str, Sequence[Sequence[float]]]) -> Scores:
        flat = (value for stack in values.values() for layer in stack for value in layer)
        return Scores(self.layout, tuple(flat))

    def quantity(self, name: str) -> Sequence[float]:
        """A quantity of what every head does."""
        return self.record["quantities"][name]["values"]

    def redundancy(self) -> Redundancy:
        """The matrices of a run that measured some."""
        from headcount.likeness.result import load_redundancy

        return load_redundancy(product_of(self.run, self.folder))


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def by_axes(
    runs: Iterable[FinishedRun], axes: Sequence[str], value: Callable[[FinishedRun], float]
) -> dict[object, dict[int, float]]:
    """Values of the axes (a tuple, or the value of one) -> seed -> a value of the run."""
    values: dict[object, dict[int, float]] = {}
    for run in runs:
        key = tuple(run.at(name) for name in axes)
        values.setdefault(key[0] if len(axes) == 1 else key, {})[run.seed] = value(run)
    return values


class PaperRuns:
    """The runs of a scale's plan that are done, by group."""

    def __init__(self, plan: Plan, folder: str | Path) -> None:
        self.plan, self.folder = plan, expanded(folder)
        self.ledger = Ledger(self.folder)
        self.verdicts: dict[str, Verdict] = {}
        """Claims that were judged by these runs, by code: several items bear on one."""
        self._records: dict[str, Row] = {}

    @cached_property
    def cells(self) -> dict[str, list[Cell]]:
        """Group -> its runs in the plan."""
        cells: dict[str, list[Cell]] = {}
        for cell in self.plan.cells:
            cells.setdefault(cell.group, []).append(cell)
        return cells

    @cached_property
    def done(self) -> frozenset[str]:
        """Keys of the runs that are done."""
        states = self.ledger.states([cell.key for cell in self.plan.cells])
        return frozenset(key for key, state in states.items() if state.name == "done")

    def count(self, groups: Iterable[str]) -> tuple[int, int]:
        """(how many runs of some groups are done, how many there are)."""
        cells = [cell for name in groups for cell in self.cells.get(name, [])]
        return sum(cell.key in self.done for cell in cells), len(cells)

    def is_whole(self, *groups: str) -> bool:
        """Whether the scale has every one of these groups, and all its runs are done."""
        done, total = self.count(groups)
        return all(self.cells.get(name) for name in groups) and done == total

    def first_group(self, *groups: str) -> str:
        """The first of some groups that the scale has; the last where it has none."""
        return next((name for name in groups if self.cells.get(name)), groups[-1])

    def runs(self, group: str, **axes: object) -> list[FinishedRun]:
        """The finished runs of a group whose axes have these values."""
        runs = [
            FinishedRun(cell, self.ledger.folder_of(cell.key), self._record(cell.key))
            for cell in self.cells.get(group, [])
            if cell.key in self.done
        ]
        return [run for run in runs if all(run.at(name) == axes[name] for name in axes)]

    def scores(self, group: str, *axes: str, **wanted: object) -> dict[Any, dict[int, float]]:
        """Values of the axes (a tuple, or the value of one) -> seed -> score."""
        return by_axes(self.runs(group, **wanted), axes, lambda run: run.score)

    def _record(self, key: str) -> Row:
        if key not in self._records:
            self._records[key] = self.ledger.record(key)
        return self._records[key]
