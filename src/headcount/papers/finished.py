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
from headcount.heads import Mask, Scores
from headcount.runs.kinds.bench import BenchSummary
from headcount.runs.kinds.prune import Prune
from headcount.runs.kinds.roles import RolesSummary
from headcount.runs.kinds.transfer import TransferSummary
from headcount.runs.products import product_of
from headcount.runs.prune_result import LearnedResult, PruneResult
from headcount.runs.record import ResultKind, result_of
from headcount.runs.results import ByHead, Result
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

    @cached_property
    def result(self) -> Result:
        """What came out of it."""
        return result_of(self.record, str(self.folder))

    def _result_as(self, kind: type[ResultKind]) -> ResultKind:
        assert isinstance(self.result, kind), f"{self.folder} is of another kind of run"
        return self.result

    @property
    def pruned(self) -> PruneResult:
        """What came out of a prune."""
        return self._result_as(PruneResult)

    @property
    def transfer(self) -> TransferSummary:
        """What came out of two checkpoints that were compared."""
        return self._result_as(TransferSummary)

    @property
    def bench(self) -> BenchSummary:
        """What came out of a bench."""
        return self._result_as(BenchSummary)

    def at(self, name: str) -> Any:
        """The value of an axis, or the run's task or seed where that is no axis."""
        if name in self.cell.axes:
            return self.cell.axes[name]
        return {"task": self.run.task, "seed": self.run.seed}.get(name)

    @property
    def seed(self) -> int:
        """The run's seed; of one that starts from each of other runs, that of the other run."""
        return int(self.at("seed"))

    @property
    def task(self) -> str:
        """The run's task."""
        return str(self.at("task"))

    @property
    def method(self) -> str:
        """The pruning method, be it an axis or not."""
        return str(self.at("method") or self.pruned.method)

    @property
    def gradient(self) -> str:
        """What straight-through gates take for the gradient of the step."""
        return str(self.record["run"]["options"]["method"].get("coarse", ""))

    @property
    def ratio(self) -> float:
        """The share of heads that was to be removed, be it an axis or not; NaN for none."""
        ratio = self.at("ratio")
        if ratio is None and isinstance(self.result, PruneResult):
            ratio = self.result.ratio
        return float(ratio) if isinstance(ratio, int | float) else math.nan

    @property
    def score(self) -> float:
        """What the model scored in the end; NaN without a score."""
        return math.nan if self.result.evaluated is None else number_of(self.result.evaluated.score)

    @property
    def score_before(self) -> float:
        """The score of the model as it was given."""
        scores = self.pruned.scores
        return math.nan if scores is None else number_of(scores.before.score)

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
        scores = {} if self.result.evaluated is None else self.result.evaluated.scores
        return number_of(scores["accuracy"].value) if "accuracy" in scores else math.nan

    @property
    def metric(self) -> str:
        """The metric of the score."""
        return "" if self.result.evaluated is None else self.result.evaluated.metric

    @property
    def rows(self) -> int:
        """How many rows were scored."""
        return 0 if self.result.evaluated is None else self.result.evaluated.n

    @property
    def heads(self) -> int:
        """How many heads there were."""
        return self.pruned.heads.before

    @property
    def heads_kept(self) -> int:
        """How many heads are left."""
        return self.pruned.heads.after

    @property
    def sparsity(self) -> float:
        """The share of heads that went."""
        return 1 - self.heads_kept / self.heads

    @property
    def mask(self) -> Mask:
        """The heads that are left."""
        return self.pruned.mask

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
        return self.pruned.all_closed is not None

    @property
    def gates(self) -> LearnedResult | None:
        """How often gates closed and reopened, and the gap between training and test gates."""
        return self.pruned.learned

    @property
    def gate_gap(self) -> float:
        """Score with training gates minus score with test gates."""
        gap = self.gates and self.gates.gap
        return number_of(gap and gap.gap)

    @property
    def drift(self) -> Scores:
        """How far the attention of every head moved."""
        return self._by_head(self.transfer.drift.attention)

    @property
    def pruned_by(self) -> Prune | None:
        """How the model that it starts from was pruned; None for all heads."""
        model = self.run.model
        return model.options_as(Prune) if isinstance(model, Run) and model.kind == "prune" else None

    @property
    def weight_change_of_heads(self) -> Scores:
        """How far the weights of every head moved."""
        return self._by_head({"encoder": self.transfer.weight_change.heads["encoder"]})

    @property
    def importance(self) -> dict[str, Scores]:
        """Task -> importance of every head."""
        return {name: self._by_head(values) for name, values in self.transfer.importance.items()}

    def _by_head(self, values: ByHead) -> Scores:
        flat = (number_of(value) for stack in values.values() for layer in stack for value in layer)
        return Scores(self.transfer.layout, tuple(flat))

    def quantity(self, name: str) -> Sequence[float | None]:
        """A quantity of what every head does."""
        return self._result_as(RolesSummary).quantities[name].values

    def redundancy(self) -> Redundancy:
        """The matrices of a run that measured some."""
        from headcount.likeness.result import load_redundancy

        return load_redundancy(product_of(self.run, self.folder))


def number_of(value: float | None) -> float:
    """A number of a record; NaN where it is undefined."""
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
