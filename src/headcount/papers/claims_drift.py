"""The claims of Why Can You Lay Off Heads? on fine-tuning, tested: LO4, LO6 and LO8."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from headcount.papers.claims import Statistic, tests, worst
from headcount.papers.estimates import (
    SampleSize,
    at_least,
    at_most,
    estimate,
    more_than,
    noted,
    rank_statistic,
    statistic,
)
from headcount.papers.finished import PaperRuns, number_of
from headcount.runs.kinds.transfer import CorrelationValues, RecallValues
from headcount.statistics import correlation_interval

Recalls: TypeAlias = Mapping[str, Sequence[RecallValues]]
"""Task -> what its runs recall with the heads that are kept for one share of the score."""
AT, RECALL, LITTLE = 0.75, 0.9, 0.10
FEW = 10
"""With fewer layers than this the note says that they are few."""


@tests("LO4", "drift")
def recalled(finished: PaperRuns) -> Sequence[Statistic]:
    """Of the heads a task needs, the share that is kept by pruning on the pre-training task.

    Then the same with more and with fewer heads kept: whether it is their number that is lacking.
    """
    shares: dict[float, dict[str, list[RecallValues]]] = {}
    for run in finished.runs("drift"):
        for row in run.transfer.recall:
            if row.needed:
                recalls = shares.setdefault(round(row.at, 6), {})
                recalls.setdefault(run.task, []).append(row)
    tasks = shares.pop(AT, {})
    if not tasks:
        return []
    by_task = [_recall(AT, task, tasks[task]) for task in tasks] if len(tasks) > 1 else []
    others = {_kept(tasks): AT}
    for share in sorted(shares):
        others.setdefault(_kept(shares[share]), share)
    more = [_over_tasks(share, shares[share]) for share in list(others.values())[1:]]
    return [_over_tasks(AT, tasks), *by_task, *more]


def _kept(tasks: Recalls) -> float:
    return float(np.mean([row.kept for rows in tasks.values() for row in rows]))


def _over_tasks(share: float, tasks: Recalls) -> Statistic:
    """The mean over tasks, with an interval over them; of a single one that over its heads."""
    every = [row for rows in tasks.values() for row in rows]
    chance = np.mean([number_of(row.chance) for row in every])
    note = (
        f"{_kept(tasks):.3g} of {every[0].heads} heads are kept: as many at random recall "
        f"{chance:.3f}"
    )
    by_task = [_recall(share, task, tasks[task]) for task in tasks]
    if len(tasks) == 1:
        return noted(by_task[0], f"the one task that needs heads; {note}")
    return estimate(
        f"recall at {share:g}, mean over tasks",
        [task.value for task in by_task],
        at_least(RECALL),
        SampleSize(len(tasks), "tasks", max(map(len, tasks.values()))),
        f"the interval is over tasks; {note}",
    )


def _recall(share: float, task: str, rows: Sequence[RecallValues]) -> Statistic:
    """One task: heads as if they were drawn, one by one."""
    from scipy.stats import binomtest

    both, needed = sum(row.both for row in rows), sum(row.needed for row in rows)
    ends = binomtest(both, needed).proportion_ci()
    return statistic(
        f"recall at {share:g}, {task}",
        (both / needed, float(ends.low), float(ends.high)),
        at_least(RECALL),
        SampleSize(needed, "heads the task needs", len(rows)),
        f"chance {number_of(rows[0].chance):.3f}, p {number_of(rows[0].p):.2g}; exact binomial "
        "interval",
    )


@tests("LO6", "drift")
def lower_layers(finished: PaperRuns) -> Sequence[Statistic]:
    """Layer against the mean JS divergence of its heads; of all tasks together, and of each."""
    js, largest, hidden = (_by_layer(finished, name) for name in ("mean", "max", "hidden"))
    what = "Spearman of layer and mean JS divergence"
    return [
        _trend(f"{what}, mean over {len(js)} tasks", js),
        *(_trend(f"{what}, {task}", {task: js[task]}) for task in js),
        _trend("Spearman of layer and the JS divergence of its farthest head", largest),
        _trend("Spearman of layer and L2 distance of its output", hidden),
    ]


def _by_layer(finished: PaperRuns, name: str) -> dict[str, np.ndarray]:
    """Task -> a measure of drift for every layer of the first stack, mean over seeds."""
    drifts: dict[str, list[np.ndarray]] = {}
    for run in finished.runs("drift"):
        layers = run.transfer.drift.layers
        values = [getattr(row, name) for row in layers if row.stack == layers[0].stack]
        drifts.setdefault(run.task, []).append(np.array(values, float))
    return {task: np.mean(values, axis=0) for task, values in drifts.items()}


def _trend(what: str, tasks: Mapping[str, np.ndarray]) -> Statistic:
    values = np.mean(list(tasks.values()), axis=0)
    layers = range(len(values))
    note = "" if len(layers) >= FEW else f"{len(layers)} layers give little power"
    size = SampleSize(len(layers), "layers")
    return rank_statistic(what, list(layers), values.tolist(), more_than(0.0), size, note)


@tests("LO8", "drift")
def drift_and_importance(finished: PaperRuns) -> Sequence[Statistic]:
    """How far a head moves against its importance, on the task and on the pre-training task."""
    rows = list(_correlations(finished))
    first = max(rows, key=lambda row: row.value)
    wide = correlation_interval(0.0, first.n)[1]
    note = (
        f"the largest of {len(rows)}, and the verdict on all of them; {first.n} heads leave an "
        f"interval of ± {wide:.2f} around no correlation"
    )
    if not wide <= LITTLE:
        note += f", so at most {LITTLE:.2f} cannot be shown with so few"
    return [noted(first, note, worst([row.verdict for row in rows])), *rows]


def _correlations(finished: PaperRuns) -> Iterator[Statistic]:
    """Every task with each importance; of several seeds the mean r, by Fisher's z."""
    measured: dict[tuple[str, str], list[CorrelationValues]] = {}
    for run in finished.runs("drift"):
        for name, correlation in run.transfer.correlations.items():
            measured.setdefault((name, run.task), []).append(correlation)
    for (name, task), rows in measured.items():
        known = [number_of(row.pearson) for row in rows]
        r = float(np.tanh(np.mean(np.arctanh(known))))
        low, high = correlation_interval(r, rows[0].n)
        least = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
        yield statistic(
            f"|Pearson r| of JS divergence and importance on {name}, {task}",
            (abs(r), least, max(abs(low), abs(high))),
            at_most(LITTLE),
            SampleSize(rows[0].n, "heads", len(rows)),
            f"r {r:+.3f} [{low:+.3f}, {high:+.3f}]",
        )
