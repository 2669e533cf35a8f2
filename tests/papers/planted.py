"""Finished runs made up by hand, so that a claim's answer is known: nothing is computed.

finished = Planted()
finished.add("random", {"task": "cola", "ratio": 0.5, "seed": 0}, prune(score=0.5))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from headcount.heads import Layout, Mask
from headcount.papers.claims import Statistic, groups_of_claim, judge, read_claims
from headcount.papers.finished import PaperRuns
from headcount.runs.run import Run
from headcount.studies.plan import Cell
from runs.whole import whole_record

SEEDS = (0, 1, 2)


class Planted(PaperRuns):
    """Runs that are all done, with the records that they were given."""

    def __init__(self) -> None:
        self.folder = Path("planted")
        self.ledger = cast(Any, SimpleNamespace(folder_of=lambda key: Path("planted") / key))
        self.cells: dict[str, list[Cell]] = {}  # type: ignore[misc]
        self.verdicts = {}
        self._records: dict[str, Mapping[str, Any]] = {}

    @property
    def done(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset(self._records)

    def add(
        self,
        group: str,
        axes: Mapping[str, Any],
        record: Mapping[str, Any],
        model: str | Run = "pocket",
    ) -> None:
        key = f"{group}-{len(self._records)}"
        fields = {"key": key, "seed": axes.get("seed", 0), "task": axes.get("task", "task")}
        run = cast(Run, SimpleNamespace(model=model, **fields))
        self.cells.setdefault(group, []).append(Cell(group=group, axes=axes, run=run))
        self._records[key] = whole_record(str(record["kind"]), record)


def scored(value: float | None, metric: str = "accuracy", **others: float) -> dict[str, Any]:
    every = {name: {"value": score} for name, score in ({metric: value} | others).items()}
    return {"metric": metric, "score": value, "n": 500, "scores": every}


def train(score: float | None, metric: str = "accuracy", **others: float) -> dict[str, Any]:
    return {"kind": "train", "evaluation": scored(score, metric, **others)}


def prune(
    score: float | None,
    *,
    kept: Mapping[str, Sequence[int]] | None = None,
    heads: int = 8,
    before: float = 1.0,
    metric: str = "accuracy",
    method: Mapping[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A cut that keeps so many heads in each layer; six layers with half their heads by default."""
    counts = kept or {"encoder": [heads // 2] * 6}
    total = sum(heads * len(layers) for layers in counts.values())
    return {
        "kind": "prune",
        "heads": {"before": total, "after": sum(map(sum, counts.values()))},
        "scores": {"before": scored(before, metric), "after": scored(score, metric)},
        "mask": _mask(counts, heads),
        "run": {"options": {"method": dict(method or {})}},
        **more,
    }


def _mask(counts: Mapping[str, Sequence[int]], heads: int) -> dict[str, Any]:
    layout = Layout.of(**{stack: [heads] * len(layers) for stack, layers in counts.items()})
    kept = [head for head in layout if head.index < counts[head.stack][head.layer]]
    return Mask(layout, frozenset(kept)).to_json()


def verdict(code: str, finished: Planted) -> Sequence[Statistic]:
    """What a claim's test says of planted runs; all groups that it needs must be there."""
    judged = judge(read_claims()[code], finished, "pocket")
    assert finished.is_whole(*groups_of_claim(code)), finished.cells.keys()
    assert judged.word == judged.tested[0].verdict
    for tested in judged.tested:  # an interval holds its value; what was not run has none
        assert tested.verdict == "not run" or not tested.low > tested.value
        assert tested.verdict == "not run" or not tested.high < tested.value
    return judged.tested
