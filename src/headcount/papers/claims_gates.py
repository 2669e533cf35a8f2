"""The claims of AutoAttention (2022), tested.

Those on scores of pruned models (section 4): against other methods, and how many heads go with no
loss. Those on the gates themselves are in `claims_gate_training` and `claims_gate_sweeps`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from headcount.papers import claims_gate_sweeps as claims_gate_sweeps  # their tests come along
from headcount.papers import claims_gate_training as claims_gate_training
from headcount.papers.claims import TestedStatistic, tests
from headcount.papers.finished import FinishedRun, PaperRuns
from headcount.papers.gate_runs import OURS, gradients, method_of, primary, score_before
from headcount.papers.seeds import (
    ByTask,
    absent,
    at_least,
    by_task,
    mean_of,
    measured,
    minus,
    more_than,
    no_ratio,
    of_all,
    percent,
    ratio_of,
    rows_behind,
    sentences,
)
from headcount.statistics import compare_groups

RIVALS = ("random", "importance", "hard-concrete", "meta")
PRINTED = ("softplus", "softplus-derivative")
"""The two readings of equation 10."""
READINGS = "gates-printed"
"""A group with the readings of equation 10 that `gates` has not; it need not be there."""
ROUNDING = 1e-9
Floor = Callable[[float], float]
"""From the score of all heads to the lowest that still counts as kept."""


@tests("AA1", "gates")
def _against_rivals(found: PaperRuns) -> Sequence[TestedStatistic]:
    """Straight-through gates against each rival with half the heads removed."""
    runs = found.runs("gates") + found.runs(READINGS)
    half = [each for each in runs if ratio_of(each) == 0.5]
    readings = gradients(half)
    if not readings:
        what = f"score of {OURS} minus its closest rival's, half the heads removed"
        return [no_ratio(what, 0.5, [each for each in runs if method_of(each) == OURS])]
    rivals = {name: by_task(e for e in half if method_of(e) == name) for name in RIVALS}
    unread = [name for name in PRINTED if name not in readings]
    tested = [
        _against(own, rivals, f"{OURS} ({coarse})" if len(readings) > 1 else OURS,
                 sentences(f"The gates' gradient is {coarse}.", _said(unread)))
        for coarse, own in readings.items()
    ]  # fmt: skip
    return [*(first for first, *_ in tested), *(each for _, *rest in tested for each in rest)]


def _said(unread: Sequence[str]) -> str:
    return f"Readings of equation 10 that were not run: {', '.join(unread)}." if unread else ""


def _against(
    runs: Sequence[FinishedRun], rivals: Mapping[str, ByTask], ours: str, note: str
) -> list[TestedStatistic]:
    """The smallest difference first, then that to every rival, then the smallest of each task."""
    own, behind = by_task(runs), rows_behind(runs)
    tables = {name: minus(own, table) for name, table in rivals.items()}
    means = {name: mean_of(table.values()) for name, table in tables.items()}
    gaps = {name: gap for name, gap in means.items() if gap}
    nothing = dict.fromkeys({seed for gap in gaps.values() for seed in gap}, 0.0)
    rows = compare_groups(gaps | {"": nothing}, "", higher_is_better=True)
    ps = {name: row["p_corrected"] for name, row in rows.items()}
    holm = {name: "unknown" if math.isnan(p) else f"{p:.3f}" for name, p in ps.items()}
    each = {
        name: measured(f"score of {ours} minus {name}", gap, more_than(0),
                       note=f"Holm's p {holm[name]}.", **behind)
        for name, gap in gaps.items()
    }  # fmt: skip
    missing = [
        absent(f"score of {ours} minus {name}", f"No run of {name} removes half the heads.")
        for name in rivals
        if name not in gaps
    ]
    what = f"score of {ours} minus its closest rival's, half the heads removed"
    if not each:
        return [absent(what, sentences("No rival has runs here.", note)), *missing]
    closest = min(each, key=lambda name: each[name].value)
    verdict = of_all([tested.verdict for tested in (*each.values(), *missing)])
    corrected = ", ".join(f"{name} {p}" for name, p in holm.items())
    note = sentences(f"The closest is {closest}; Holm's p: {corrected}.", note)
    first = replace(each[closest], what=what, verdict=verdict, note=note)
    return [first, *each.values(), *missing, *_by_task(own, tables, ours)]


def _by_task(own: ByTask, tables: Mapping[str, ByTask], ours: str) -> list[TestedStatistic]:
    """For every task the difference to the rival that comes closest there."""
    found = []
    for task in own if len(own) > 1 else ():
        gaps = {name: table[task] for name, table in tables.items() if task in table}
        if gaps:
            name = min(gaps, key=lambda each: math.fsum(gaps[each].values()) / len(gaps[each]))
            what = f"score of {ours} minus its closest rival's ({name}), {task}"
            found.append(measured(what, gaps[name], more_than(0)))
    return found


@tests("AA2", "gates", "gates-full")
def _no_loss(found: PaperRuns) -> Sequence[TestedStatistic]:
    """The most heads that go without a lower score."""
    return _how_many(found, 0.57, {"with no loss": lambda whole: whole})


@tests("AA3", "gates", "gates-full")
def _within_one(found: PaperRuns) -> Sequence[TestedStatistic]:
    """The most heads that go within one percent: a point of the score, or a share of it."""
    floors: dict[str, Floor] = {
        "within 1 point of the score": lambda whole: whole - 0.01,
        "within 1 % of the score": lambda whole: whole - 0.01 * abs(whole),
    }
    note = (
        "Points come first: in the paper's table 3 at most 1.0 points are lost, but up to 1.8 % "
        "of the score."
    )
    return _how_many(found, 0.79, floors, note)


def _how_many(
    found: PaperRuns, threshold: float, floors: Mapping[str, Floor], note: str = ""
) -> list[TestedStatistic]:
    """The highest sparsity that was tried and keeps the score, in several ways to say so."""
    runs = primary(found.runs("gates"))
    whole = by_task(found.runs("gates-full"))
    tried = sorted({round(each.sparsity, 3) for each in runs})
    if not runs:
        return [absent("highest sparsity", f"No run of {OURS} is among them.")]
    note = sentences(
        f"Only what was tried can come out: {', '.join(map(percent, tried))}, or 0.", note
    )
    behind: dict[str, Any] = {**rows_behind(runs), "note": note}

    def trained(run: FinishedRun) -> float:
        return whole.get(str(run.at("task")), {}).get(run.seed, math.nan)

    rule, tested = at_least(threshold), []
    for how, floor in floors.items():
        most = _highest(runs, trained, floor)
        what = f"highest sparsity {how}"
        tested.append(measured(f"{what} of all heads trained alike", mean_of(most.values()),
                               rule, **behind))  # fmt: skip
    how, floor = next(iter(floors.items()))
    steady = _highest(runs, trained, floor, steady=True)
    given = _highest(runs, score_before, floor)
    tested += [
        measured(f"highest sparsity up to which every one tried is {how}",
                 mean_of(steady.values()), rule, **behind),
        measured(f"highest sparsity {how} of the model as given", mean_of(given.values()),
                 rule, **behind),
    ]  # fmt: skip
    most = _highest(runs, trained, floor)
    return tested + [
        measured(f"highest sparsity {how} of all heads trained alike, {task}", most[task], rule)
        for task in (most if len(most) > 1 else ())
    ]


def _highest(
    runs: Sequence[FinishedRun], whole: Callable[[FinishedRun], float], floor: Floor, *,
    steady: bool = False,
) -> dict[str, dict[int, float]]:  # fmt: skip
    """Task -> seed -> the highest sparsity that keeps the score; `steady`: and all below it do."""
    found: dict[str, dict[int, float]] = {}
    broken: set[tuple[str, int]] = set()
    for run in sorted(runs, key=lambda each: each.sparsity):
        task, goal = str(run.at("task")), whole(run)
        if math.isnan(goal):
            continue
        best = found.setdefault(task, {}).setdefault(run.seed, 0.0)
        if run.score >= floor(goal) - ROUNDING and (task, run.seed) not in broken:
            found[task][run.seed] = max(best, run.sparsity)
        elif steady:
            broken.add((task, run.seed))
    return found
