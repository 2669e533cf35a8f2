"""The points of a curve: kept line by line while it is made, summed up when it is there."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headcount.files import whole
from headcount.heads import Mask, Scores
from headcount.statistics import interval, paired
from headcount.studies import store
from headcount.tasks.metrics import Difference, get_metric
from headcount.training.evaluate import Evaluation

POINTS = "points.jsonl"


@dataclass(frozen=True, kw_only=True)
class Point:
    """One cut, scored."""

    method: str
    ratio: float
    seed: int
    kept: int
    """Heads that stay."""
    pattern: str
    """How many in each layer."""
    score: float
    low: float
    """The 95 % interval over rows, by bootstrap."""
    high: float
    n: int
    difference: float = math.nan
    """From the model with all heads, on the same rows; below with the 95 % interval of its own."""
    difference_low: float = math.nan
    difference_high: float = math.nan


def point_of(
    found: Evaluation, method: str, ratio: float, seed: int, mask: Mask, loss: Difference
) -> Point:
    """A point from its evaluation and what it lost."""
    score = found.scores[0]
    return Point(
        method=method, ratio=ratio, seed=seed, kept=len(mask), pattern=mask.pattern,
        score=score.value, low=score.low, high=score.high, n=found.n, **loss_columns(loss),
    )  # fmt: skip


def loss_columns(loss: Difference) -> dict[str, float]:
    """A difference as the columns of a point or run."""
    return {
        "difference": loss.value,
        "difference_low": loss.low,
        "difference_high": loss.high,
    }


def loss_of(own: Sequence[Any], full: float | None, metric: str) -> dict[str, Any]:
    """What cuts lost in the mean, and in words: over cuts, or over rows where there is one cut."""
    before = math.nan if full is None else full
    mean, low, high = interval([each.score - before for each in own])
    if len(own) == 1:
        low, high = own[0].difference_low, own[0].difference_high
    lost = Difference(metric=metric, value=mean, low=low, high=high)
    return {"difference": lost.to_json(), "lost": str(lost)}


def ends(values: Sequence[float], metric: str) -> dict[str, float]:
    """The worst and the best of some scores: of perplexity the best is the least."""
    ordered = sorted(values, reverse=not get_metric(metric).higher_is_better)
    return {"worst": ordered[0], "best": ordered[-1]}


class Store(store.Store[Point]):
    """Finished points, in a folder where there is one."""

    def __init__(self, folder: Path | None, about: Mapping[str, Any], **how: Any) -> None:
        super().__init__(Point, _key, folder, about, file=POINTS, **how)

    def get(self, method: str, ratio: float, seed: int) -> Point | None:
        """A finished point."""
        return self.done.get((method, ratio, seed))


def _key(point: Point) -> tuple[str, float, int]:
    return point.method, point.ratio, point.seed


def versus_random(
    own: Mapping[int, float], random: Mapping[int, float], metric: str
) -> dict[str, Any]:
    """The difference from random cuts seed by seed, and what it says: better, alike or worse.

    Where the interval has a zero in it, or there is none, cuts are told apart by nothing: alike.
    """
    found = paired(own, random)
    sign = 1 if get_metric(metric).higher_is_better else -1
    verdict = "alike"
    if not found["low"] <= 0 <= found["high"] and not math.isnan(found["low"]):
        verdict = "better" if sign * found["mean"] > 0 else "worse"
    return {"against_random": found, "than_random": verdict}


@dataclass(frozen=True, kw_only=True, eq=False)
class Found:
    """A curve: the full model, every point, and each head's chance of going where it clusters."""

    about: Mapping[str, Any]
    full: Point
    points: list[Point]
    chance: Mapping[float, Scores]
    """Ratio -> how often each head was pruned over clusterings (A9)."""

    def summary(self) -> list[dict[str, Any]]:
        """For each method and ratio: mean, spread, best and worst over seeds, and relative score.

        `low` and `high` are the 95 % interval of the mean over seeds (Student's t), and so are
        those of the `difference` from the full model; of one seed that is over the same rows.
        Beside random cuts, `than_random` says whether a method is better at this ratio.
        """
        groups: dict[tuple[str, float], list[Point]] = {}
        for point in self.points:
            groups.setdefault((point.method, point.ratio), []).append(point)
        rows = [self._row(*key, own) for key, own in groups.items()]
        for row in rows:
            random = groups.get(("random", row["ratio"]))
            if random is not None and row["method"] != "random":
                own, other = (
                    {point.seed: point.score for point in part}
                    for part in (groups[row["method"], row["ratio"]], random)
                )
                row |= versus_random(own, other, str(self.about["metric"]))
        return rows

    def _row(self, method: str, ratio: float, own: list[Point]) -> dict[str, Any]:
        values = [point.score for point in own]
        mean, low, high = interval(values)
        metric = str(self.about["metric"])
        return {
            "method": method,
            "ratio": ratio,
            "kept": own[0].kept,
            "seeds": len(values),
            "mean": mean,
            "sd": float(np.std(values, ddof=1)) if len(values) > 1 else math.nan,
            "low": low,
            "high": high,
            **ends(values, metric),
            "relative": relative(mean, self.full.score),
            **loss_of(own, self.full.score, metric),
        }

    def to_json(self) -> dict[str, Any]:
        """A plain dict: what was asked, the full model, the summary and all points."""
        return {
            "about": dict(self.about),
            "full": asdict(self.full),
            "summary": self.summary(),
            "points": [asdict(point) for point in self.points],
            "chance": {str(ratio): each.by_layer() for ratio, each in self.chance.items()},
        }

    def save_parquet(self, path: Path) -> None:
        """All points, the full model first, as one table; relative scores beside the others."""
        write_parquet([asdict(each) for each in (self.full, *self.points)], self.full.score, path)


def defined(value: Any) -> Any:
    """A nest of values with None for what is not a number, as JSON has it.

    >>> defined({"score": math.nan, "draws": [0.5, math.nan]})
    {'score': None, 'draws': [0.5, None]}
    """
    if isinstance(value, dict):
        return {name: defined(item) for name, item in value.items()}
    if isinstance(value, list):
        return [defined(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def relative(score: float, full: float | None) -> float:
    """A score as a share of the full model's."""
    return score / full if full else math.nan


def write_parquet(rows: Sequence[Mapping[str, Any]], full: float, path: Path) -> None:
    """Rows with a `score` as one table, each beside its share of the full model's score."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    told = [{**row, "relative": relative(row["score"], full)} for row in rows]
    with whole(path) as partial:
        pq.write_table(pa.Table.from_pylist(told), partial)
