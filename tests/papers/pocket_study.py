"""Finished runs with a planted answer: records in a study's folder, as if it had been run.

study = PocketStudy(tmp_path, "near", "near-random")
study.fill("near", lambda cell: {}, matrices=lambda cell: {"js": values})
judge(read_claims()["RA1"], study.finished, "pocket")
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from headcount.base.header import header
from headcount.heads import Layout
from headcount.likeness.result import Measurement, Redundancy
from headcount.papers.claims import Verdict, judge, read_claims
from headcount.papers.finished import PaperRuns
from headcount.papers.scales import read_scale
from headcount.runs.kinds.prune import Prune
from headcount.runs.products import product_of
from headcount.runs.run import Run
from headcount.studies.ledger import Ledger
from headcount.studies.plan import Cell, Plan
from runs.whole import whole_record

Matrices = Mapping[str, np.ndarray]


@cache
def planned(groups: tuple[str, ...]) -> Plan:
    """The pocket scale's plan of some groups."""
    return read_scale("pocket", groups)


class PocketStudy:
    """The folder of some groups of the pocket scale, and what is put there."""

    def __init__(self, folder: Path, *groups: str) -> None:
        self.folder, self.plan = folder, planned(groups)

    def cells(self, group: str) -> list[Cell]:
        return [cell for cell in self.plan.cells if cell.group == group]

    def copy(self, group: str, name: str, **wanted: Any) -> None:
        """One more group: the runs of another with these axes, asked a little otherwise."""
        more = [
            Cell(group=name, axes=cell.axes, run=_otherwise(cell.run))
            for cell in self.cells(group)
            if all(cell.axes[axis] == value for axis, value in wanted.items())
        ]
        self.plan = replace(self.plan, cells=[*self.plan.cells, *more])

    def fill(
        self,
        group: str,
        record: Callable[[Cell], Mapping[str, Any]] = lambda _: {},
        matrices: Callable[[Cell], Matrices] | None = None,
        layout: Layout | None = None,
    ) -> None:
        """Finish every run of a group."""
        for cell in self.cells(group):
            folder = Ledger(self.folder).folder_of(cell.key)
            folder.mkdir(parents=True, exist_ok=True)
            data = {**header(cell.run.kind), "run": {}, **whole_record(cell.run.kind, record(cell))}
            (folder / "record.json").write_text(json.dumps(data))
            if cell.run.kind == "redundancy" and matrices is not None and layout is not None:
                measured = {
                    ("encoder", name): Measurement(values, np.zeros_like(values))
                    for name, values in matrices(cell).items()
                }
                redundancy = Redundancy(layout=layout, measured=measured, count=10, provenance={})
                redundancy.save(product_of(cell.run, folder))

    @property
    def finished(self) -> PaperRuns:
        return PaperRuns(self.plan, self.folder)

    def judge(self, code: str) -> Verdict:
        return judge(read_claims()[code], self.finished, "pocket")


def _otherwise(run: Run) -> Run:
    assert isinstance(run.options, Prune)
    return replace(run, options=replace(run.options, baseline=7))


def trained(score: float, metric: str = "accuracy") -> dict[str, Any]:
    """What a training leaves."""
    return {"evaluation": {"metric": metric, "score": score, "n": 1000}}


def cut(
    after: float, before: float = 0.8, gone: int = 24, heads: int = 48, metric: str = "accuracy"
) -> dict[str, Any]:
    """What a cut leaves."""
    scores = {
        "before": {"metric": metric, "score": before, "n": 500},
        "after": {"metric": metric, "score": after, "n": 500},
    }
    return {"scores": scores, "heads": {"before": heads, "after": heads - gone}}


def symmetric(values: np.ndarray) -> np.ndarray:
    """Distances out of any square of numbers."""
    values = np.clip(np.triu(values, 1), 0, 1)
    return values + values.T
