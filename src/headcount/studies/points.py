"""The points of a curve: kept line by line while it is made, summed up when it is there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headcount.heads import Mask, Scores
from headcount.redundancy.whole import whole
from headcount.training import checkpoints
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


def point_of(found: Evaluation, method: str, ratio: float, seed: int, mask: Mask) -> Point:
    """A point from its evaluation."""
    score = found.scores[0]
    return Point(
        method=method, ratio=ratio, seed=seed, kept=len(mask), pattern=mask.pattern,
        score=score.value, low=score.low, high=score.high, n=found.n,
    )  # fmt: skip


class Store:
    """Finished points, in a folder where there is one."""

    def __init__(
        self, folder: Path | None, about: Mapping[str, Any], *, overwrite: bool = False
    ) -> None:
        self.folder = folder
        self.points: dict[tuple[str, float, int], Point] = {}
        if folder is None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        if overwrite:
            for name in (POINTS, checkpoints.SETTINGS):
                (folder / name).unlink(missing_ok=True)
        checkpoints.require_same_settings(folder, about)
        checkpoints.write_json(folder / checkpoints.SETTINGS, dict(about))
        for point in read_points(folder / POINTS):
            self.points[point.method, point.ratio, point.seed] = point
        # what a kill cut short is not to stand before the next point
        lines = "".join(json.dumps(asdict(point)) + "\n" for point in self.points.values())
        with whole(folder / POINTS) as partial:
            partial.write_text(lines, encoding="utf-8")

    def get(self, method: str, ratio: float, seed: int) -> Point | None:
        """A finished point."""
        return self.points.get((method, ratio, seed))

    def add(self, point: Point) -> Point:
        """Keep a point for good."""
        self.points[point.method, point.ratio, point.seed] = point
        if self.folder is not None:
            with (self.folder / POINTS).open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(point)) + "\n")
        return point


def read_points(path: Path) -> Iterator[Point]:
    """The points that a run left in a file; a line that a kill cut short is passed over."""
    if path.is_file():
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.endswith("}"):
                yield Point(**json.loads(line))


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

        `low` and `high` are the 95 % interval of the mean over seeds (Student's t).
        """
        groups: dict[tuple[str, float], list[Point]] = {}
        for point in self.points:
            groups.setdefault((point.method, point.ratio), []).append(point)
        return [self._row(*key, own) for key, own in groups.items()]

    def _row(self, method: str, ratio: float, own: list[Point]) -> dict[str, Any]:
        from scipy.stats import t

        values = np.array([point.score for point in own])
        sd = float(values.std(ddof=1)) if len(values) > 1 else float("nan")
        wide = float(t.ppf(0.975, max(len(values) - 1, 1))) * sd / np.sqrt(len(values))
        mean = float(values.mean())
        return {
            "method": method,
            "ratio": ratio,
            "kept": own[0].kept,
            "seeds": len(values),
            "mean": mean,
            "sd": sd,
            "low": mean - wide,
            "high": mean + wide,
            "worst": float(values.min()),
            "best": float(values.max()),
            "relative": mean / self.full.score if self.full.score else float("nan"),
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
        import pyarrow as pa
        import pyarrow.parquet as pq

        rows = [asdict(point) for point in (self.full, *self.points)]
        for row in rows:
            row["relative"] = row["score"] / self.full.score if self.full.score else float("nan")
        with whole(path) as partial:
            pq.write_table(pa.Table.from_pylist(rows), partial)
