"""Runs with straight-through gates, by the gradient that stands in for the step's."""

from __future__ import annotations

import math
from collections.abc import Iterable

from headcount.papers.finished import FinishedRun

OURS = "straight-through"


def gradients(runs: Iterable[FinishedRun]) -> dict[str, list[FinishedRun]]:
    """What stands in for the step's derivative -> straight-through runs; as printed comes first."""
    found: dict[str, list[FinishedRun]] = {}
    for each in runs:
        if method_of(each) == OURS:
            coarse = each.record["run"]["options"]["method"].get("coarse", "")
            found.setdefault(str(coarse), []).append(each)
    return dict(sorted(found.items(), key=lambda pair: pair[0] != "softplus"))


def primary(runs: Iterable[FinishedRun]) -> list[FinishedRun]:
    """The straight-through runs of the first of these gradients."""
    return next(iter(gradients(runs).values()), [])


def method_of(run: FinishedRun) -> str:
    """The method of a cut, be it an axis or not."""
    return str(run.at("method") or run.record["method"])


def score_before(run: FinishedRun) -> float:
    """The score of the model as it was given."""
    value = run.record["scores"]["before"]["score"]
    return math.nan if value is None else float(value)
