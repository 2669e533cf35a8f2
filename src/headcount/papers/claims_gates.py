"""The claims of AutoAttention (2022) on scores of pruned models, tested: AA1 to AA3 (section 4).

Against other methods, and how many heads go with no loss. Those on the gates themselves are in
`claims_gate_training`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from headcount.papers.claims import Statistic, tests
from headcount.papers.estimates import (
    ByTask,
    absent,
    at_least,
    by_task,
    each_task,
    estimate,
    mean_of,
    minus,
    more_than,
    no_ratio,
    of_all,
    percent,
    rows_scored,
    sentences,
)
from headcount.papers.finished import FinishedRun, PaperRuns
from headcount.statistics import compare_groups

OURS = "straight-through"
RIVALS = ("random", "importance", "hard-concrete", "meta")
PRINTED = ("softplus", "softplus-derivative")
"""The two readings of equation 10."""
READINGS = "gates-printed"
"""A group with the readings of equation 10 that `gates` has not; it need not be there."""
ROUNDING = 1e-9
Floor = Callable[[float], float]
"""From the score of all heads to the lowest that still counts as kept."""


def gradients(runs: Iterable[FinishedRun]) -> dict[str, list[FinishedRun]]:
    """What stands in for the step's derivative -> straight-through runs; as printed comes first."""
    readings: dict[str, list[FinishedRun]] = {}
    for run in runs:
        if run.method == OURS:
            readings.setdefault(run.gradient, []).append(run)
    return dict(sorted(readings.items(), key=lambda pair: pair[0] != PRINTED[0]))


def primary(runs: Iterable[FinishedRun]) -> list[FinishedRun]:
    """The straight-through runs of the first of these gradients."""
    return next(iter(gradients(runs).values()), [])


@tests("AA1", "gates")
def against_rivals(finished: PaperRuns) -> Sequence[Statistic]:
    """Straight-through gates against each rival with half the heads removed."""
    runs = finished.runs("gates") + finished.runs(READINGS)
    half = [run for run in runs if run.ratio == 0.5]
    readings = gradients(half)
    if not readings:
        what = f"score of {OURS} minus its closest rival's, half the heads removed"
        return [no_ratio(what, 0.5, [run for run in runs if run.method == OURS])]
    rivals = {name: by_task(run for run in half if run.method == name) for name in RIVALS}
    unread = ", ".join(name for name in PRINTED if name not in readings)
    rest = f"Readings of equation 10 that were not run: {unread}." if unread else ""
    tested = []
    for gradient, ours in readings.items():
        name = f"{OURS} ({gradient})" if len(readings) > 1 else OURS
        note = sentences(f"The gates' gradient is {gradient}.", rest)
        tested.append(_against(ours, rivals, name, note))
    return [*(rows[0] for rows in tested), *(row for rows in tested for row in rows[1:])]


def _against(
    runs: Sequence[FinishedRun], rivals: Mapping[str, ByTask], ours: str, note: str
) -> list[Statistic]:
    """The smallest difference first, then that to every rival, then the smallest of each task."""
    scores, size = by_task(runs), rows_scored(runs)
    tables = {name: minus(scores, table) for name, table in rivals.items()}
    means = {name: mean_of(table.values()) for name, table in tables.items()}
    gaps = {name: gap for name, gap in means.items() if gap}
    nothing = dict.fromkeys({seed for gap in gaps.values() for seed in gap}, 0.0)
    compared = compare_groups(gaps | {"": nothing}, "", higher_is_better=True)
    ps = {name: row["p_corrected"] for name, row in compared.items()}
    holm = {name: "unknown" if math.isnan(p) else f"{p:.3f}" for name, p in ps.items()}
    rows = {
        name: estimate(
            f"score of {ours} minus {name}", gap, more_than(0), size, f"Holm's p {holm[name]}."
        )
        for name, gap in gaps.items()
    }
    missing = [
        absent(f"score of {ours} minus {name}", f"No run of {name} removes half the heads.")
        for name in rivals
        if name not in gaps
    ]
    what = f"score of {ours} minus its closest rival's, half the heads removed"
    if not rows:
        return [absent(what, sentences("No rival has runs here.", note)), *missing]
    closest = min(rows, key=lambda name: rows[name].value)
    verdict = of_all([tested.verdict for tested in (*rows.values(), *missing)])
    corrected = ", ".join(f"{name} {p}" for name, p in holm.items())
    note = sentences(f"The closest is {closest}; Holm's p: {corrected}.", note)
    first = replace(rows[closest], what=what, verdict=verdict, note=note)
    return [first, *rows.values(), *missing, *_closest_by_task(scores, tables, ours)]


def _closest_by_task(scores: ByTask, tables: Mapping[str, ByTask], ours: str) -> list[Statistic]:
    """For every task the difference to the rival that comes closest there."""
    rows = []
    for task in scores if len(scores) > 1 else ():
        gaps = {name: table[task] for name, table in tables.items() if task in table}
        if gaps:
            name = min(gaps, key=lambda rival: math.fsum(gaps[rival].values()) / len(gaps[rival]))
            what = f"score of {ours} minus its closest rival's ({name}), {task}"
            rows.append(estimate(what, gaps[name], more_than(0)))
    return rows


@tests("AA2", "gates", "gates-full")
def no_loss(finished: PaperRuns) -> Sequence[Statistic]:
    """The most heads that go without a lower score."""
    return _most_heads(finished, 0.57, {"with no loss": lambda score: score})


@tests("AA3", "gates", "gates-full")
def within_one(finished: PaperRuns) -> Sequence[Statistic]:
    """The most heads that go within one percent: a point of the score, or a share of it."""
    floors: dict[str, Floor] = {
        "within 1 point of the score": lambda score: score - 0.01,
        "within 1 % of the score": lambda score: score - 0.01 * abs(score),
    }
    note = (
        "Points come first: in the paper's table 3 at most 1.0 points are lost, but up to 1.8 % "
        "of the score."
    )
    return _most_heads(finished, 0.79, floors, note)


def _most_heads(
    finished: PaperRuns, threshold: float, floors: Mapping[str, Floor], note: str = ""
) -> list[Statistic]:
    """The highest sparsity that was tried and keeps the score, in several ways to say so."""
    runs = primary(finished.runs("gates"))
    full = by_task(finished.runs("gates-full"))
    if not runs:
        return [absent("highest sparsity", f"No run of {OURS} is among them.")]
    tried = ", ".join(map(percent, sorted({round(run.sparsity, 3) for run in runs})))
    note = sentences(f"Only what was tried can come out: {tried}, or 0.", note)

    def trained(run: FinishedRun) -> float:
        return full.get(run.task, {}).get(run.seed, math.nan)

    first, floor = next(iter(floors.items()))
    most = {name: _highest(runs, trained, floor) for name, floor in floors.items()}
    steady = _highest(runs, trained, floor, steady=True)
    given = _highest(runs, lambda run: run.score_before, floor)
    tables = {
        **{f"highest sparsity {name} of all heads trained alike": most[name] for name in most},
        f"highest sparsity up to which every one tried is {first}": steady,
        f"highest sparsity {first} of the model as given": given,
    }
    size, rule = rows_scored(runs), at_least(threshold)
    tested = [estimate(what, mean_of(tables[what].values()), rule, size, note) for what in tables]
    what = f"highest sparsity {first} of all heads trained alike"
    return [*tested, *each_task(what, most[first], rule)]


def _highest(
    runs: Sequence[FinishedRun],
    full: Callable[[FinishedRun], float],
    floor: Floor,
    *,
    steady: bool = False,
) -> dict[str, dict[int, float]]:
    """Task -> seed -> the highest sparsity that keeps the score; `steady`: and all below it do."""
    highest: dict[str, dict[int, float]] = {}
    broken: set[tuple[str, int]] = set()
    for run in sorted(runs, key=lambda run: run.sparsity):
        goal = full(run)
        if math.isnan(goal):
            continue
        best = highest.setdefault(run.task, {}).setdefault(run.seed, 0.0)
        if run.score >= floor(goal) - ROUNDING and (run.task, run.seed) not in broken:
            highest[run.task][run.seed] = max(best, run.sparsity)
        elif steady:
            broken.add((run.task, run.seed))
    return highest
