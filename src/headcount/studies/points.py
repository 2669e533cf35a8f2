"""Prunings as rows: what every table, figure and summary of a study is made from."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from headcount.base.errors import UsageError
from headcount.base.files import whole, write_json
from headcount.base.header import header
from headcount.base.json_object import JsonDict
from headcount.base.names import split_words
from headcount.base.options import defined
from headcount.runs.prune_result import (
    ClosedGates,
    DataBudget,
    LearnedResult,
    PruneResult,
    PruneScores,
)
from headcount.runs.record import Record
from headcount.statistics import deviation
from headcount.statistics.comparisons import Label
from headcount.studies.summary import Scale, compare_with, over_seeds
from headcount.tasks.metrics import Difference, ends, relative_change


@dataclass(frozen=True, kw_only=True)
class Point:
    """One pruning, scored."""

    method: str
    ratio: float | Literal["free"] | None
    seed: int
    kept: int
    """Heads that stay."""
    pattern: str
    """How many in each layer."""
    sparsity: float
    """Share of heads that went."""
    score: float
    low: float
    """The 95 % interval over rows."""
    high: float
    n: int
    difference: float
    """From the model with all heads, on the same rows; below with the 95 % interval of its own."""
    difference_low: float
    difference_high: float
    budget: DataBudget
    """Epochs, rows and steps of training, and rows looked at without."""
    learned: LearnedResult | None
    """How gates came to their number, their gap and what reopened, where they were trained."""
    seconds: float = field(compare=False)
    value: float | None = None
    """Of the option that is varied, in a sweep."""
    all_closed: ClosedGates | None = None
    """Where all gates closed: the step, which heads were open last, and what was scored."""

    @classmethod
    def of(cls, record: Record, label: str | None = None, value: float | None = None) -> Point:
        """The row of a record of a pruning; what is undefined is not a number."""
        result = record.result_as(PruneResult)
        heads, scores = result.heads, require_scores(record)
        after, lost = scores.after, scores.difference
        return cls(
            method=label or result.method,
            ratio=result.ratio,
            seed=result.seed,
            kept=heads.after,
            pattern=heads.kept,
            sparsity=1 - heads.after / heads.before,
            score=_number(after.score),
            low=_number(after.low),
            high=_number(after.high),
            n=after.n,
            difference=_number(lost.value),
            difference_low=_number(lost.low),
            difference_high=_number(lost.high),
            budget=result.budget,
            learned=result.learned,
            seconds=record.seconds,
            value=value,
            all_closed=result.all_closed,
        )

    def to_json(self) -> dict[str, object]:
        """The columns that say something."""
        return {
            name: value
            for name, value in asdict(self).items()
            if value is not None or name in ("ratio", "learned")
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class StudyResult(ABC):
    """All prunings of a study, and the model they are held against."""

    about: Mapping[str, Any]
    """What all of them depend on."""
    full: JsonDict
    """The model with all its heads, scored."""
    points: list[Point]

    @property
    def metric(self) -> str:
        """What is scored."""
        return str(self.about["metric"])

    @abstractmethod
    def summary(self) -> list[JsonDict]:
        """A row for each group of prunings that differ by their seed alone."""

    def to_json(self) -> dict[str, object]:
        """A plain dict: what was asked, the full model, the summary and all points."""
        return {
            "about": dict(self.about),
            "full": self.full,
            "summary": self.summary(),
            "points": [point.to_json() for point in self.points],
        }

    def save(self, folder: str | Path, name: str, command: str | None = None) -> None:
        """Write NAME.json, with the command that made it, and all points as NAME.parquet."""
        folder = Path(folder)
        data = header(name) | defined(self.to_json()) | {"command": command}
        write_json(folder / f"{name}.json", data)
        write_parquet(self.points, self.full["score"], folder / f"{name}.parquet")

    def group(self, points: Sequence[Point]) -> JsonDict:
        """Mean over seeds with its interval, spread, ends, and what was lost."""
        values = [point.score for point in points]
        mean, low, high = over_seeds(
            values, Scale(self.metric, points[0].n), single=(points[0].low, points[0].high)
        )
        return {
            "kept": points[0].kept,
            "seeds": len(points),
            "mean": mean,
            "sd": deviation(values),
            "low": low,
            "high": high,
            **ends(values, self.metric),
            "relative": relative(mean, self.full["score"]),
            **loss_of(points, self.full["score"], self.metric),
        }

    def compared(
        self, groups: Mapping[Label, Sequence[Point]], *references: Callable[[Label], Label]
    ) -> dict[tuple[Label, Label], JsonDict]:
        """Groups of prunings against their references seed by seed, as one table (Holm)."""
        scores = {label: by_seed(points) for label, points in groups.items()}
        scale = Scale(self.metric, self.points[0].n, self.full["score"])
        return compare_with(scores, references, scale)

    def __repr__(self) -> str:
        task = f"{self.about['task']} {split_words(self.about['split'])}"
        return f"{type(self).__name__}({task}, {self.metric}: {len(self.points)} prunings)"

    def _repr_html_(self) -> str:
        from headcount.base.html import table

        rows = self.summary()
        names = [name for name in rows[0] if not isinstance(rows[0][name], dict)] if rows else []
        cells = [[row.get(name) for name in names] for row in rows]
        return table(names, cells)


def require_scores(record: Record) -> PruneScores:
    """The scores of a prune; one without is refused."""
    scores = record.result_as(PruneResult).scores
    if scores is None:
        raise UsageError("it has no scores")
    return scores


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def require_cut(record: Record, where: Path) -> None:
    """Refuse a record that is not one of a pruning with scores, or is damaged."""
    try:
        Point.of(record)
    except (ZeroDivisionError, UsageError) as error:
        raise UsageError(
            f"{where} is no record of a pruning, or is damaged ({error}): delete its folder to "
            "have the run done again."
        ) from error


def loss_of(points: Sequence[Point], full: float | None, metric: str) -> dict[str, object]:
    """What prunings lost in the mean, and in words: over prunings, or over rows of a single one."""
    before = math.nan if full is None else full
    losses = [value.score - before for value in points]
    mean, low, high = over_seeds(
        losses,
        Scale(metric, points[0].n, full),
        differences=True,
        single=(points[0].difference_low, points[0].difference_high),
    )
    share = relative_change(metric, mean, before)
    lost = Difference(metric=metric, value=mean, low=low, high=high, relative=share)
    return {"difference": lost.to_json(), "lost": str(lost)}


def by_seed(points: Iterable[Point]) -> dict[int, float]:
    """Seed -> score."""
    return {point.seed: point.score for point in points}


def versus_random(compared: Mapping[str, object]) -> dict[str, object]:
    """What a row says about random prunings: the comparison, and whether it is better than they."""
    return {"against_random": compared, "than_random": compared["verdict"]}


def relative(score: float, full: float | None) -> float:
    """A score as a share of the full model's."""
    return score / full if full else math.nan


def write_parquet(points: Sequence[Point], full: float | None, path: Path) -> None:
    """All points as one flat table, each beside its share of the full model's score."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    left = ("budget", "learned", "all_closed")
    rows = [
        {name: value for name, value in asdict(point).items() if name not in left}
        | {
            "ratio": point.ratio if isinstance(point.ratio, float) else None,
            "steps": point.budget.steps,
            "all_closed": point.all_closed is not None,
            "relative": relative(point.score, full),
        }
        for point in points
    ]
    with whole(path) as partial:
        pq.write_table(pa.Table.from_pylist(rows), partial)
