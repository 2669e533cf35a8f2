"""The claims of On Attention Redundancy (NAACL 2021) on zero-shot pruning, tested: RA8 and RA9."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from headcount.papers.claims import Statistic, tests
from headcount.papers.estimates import (
    SampleSize,
    by_task,
    estimate,
    less_than,
    more_than,
    most_tasks,
    noted,
    percent,
    relative_to,
    rows_scored,
)
from headcount.papers.finished import FinishedRun, PaperRuns

Gone: TypeAlias = Mapping[float, Sequence[Sequence[np.ndarray]]]
"""Ratio -> for every clustering, by layer, which heads went."""

RATIOS = (0.75, 0.85)
LOSS = 0.05
FULL = ("zero-shot-full", "tuned")
"""Groups of the model with all heads; the first where its training is not that of others."""
BETWEEN = (0.25, 0.75)
"""Ratios at which the paper says which heads go."""
ONE_MATRIX, ONE_CHANCE = "zero-shot-one", "chance-one"
"""Groups that cluster heads by one distance only; they need not be there."""
SIDES = {"lower": 0, "upper": 2}
"""Thirds of the layers that are compared with the middle one."""


@tests("RA8", "tuned", "zero-shot")
def zero_shot(finished: PaperRuns) -> Sequence[Statistic]:
    """Heads pruned by clusters of random tokens' attention, then fine-tuned: the relative drop."""
    which = "clusters of the mean of all seven distances"
    first, second = (_at(finished, "zero-shot", ratio, which) for ratio in RATIOS)
    rows = [*first[:1], *second[:1], *first[1:], *second[1:]]
    if finished.is_whole(ONE_MATRIX):
        for ratio in RATIOS:
            rows += _at(finished, ONE_MATRIX, ratio, "clusters of one distance")
    return rows


def _at(finished: PaperRuns, group: str, ratio: float, which: str) -> list[Statistic]:
    """The share of tasks that lose less than 5 %, and the drop on each."""
    runs = finished.runs(group, ratio=ratio)
    gone = f"with {percent(ratio)} of the heads gone"
    tasks = [
        estimate(
            f"relative drop {gone}, {task}, {which}",
            drops,
            less_than(LOSS),
            rows_scored(run for run in runs if run.task == task),
            _random(finished, task),
        )
        for task, drops in _drops(finished, runs).items()
    ]
    if not tasks:
        return []
    what = f"share of tasks that lose less than 5 % {gone}, {which}"
    return [most_tasks(what, tasks, [task.value < LOSS for task in tasks]), *tasks]


def _random(finished: PaperRuns, task: str) -> str:
    """What as many heads drawn at random lose, at the ratios that there are near these."""
    if not finished.is_whole("random"):
        return ""
    ratios = sorted({run.ratio for run in finished.runs("random")})
    losses = []
    for ratio in (ratio for ratio in ratios if ratio >= RATIOS[0] - 0.1):
        drops = _drops(finished, finished.runs("random", ratio=ratio, task=task)).get(task)
        losses += [f"{np.mean(list(drops.values())):.3f} at {percent(ratio)}"] if drops else []
    return f"random heads lose {', '.join(losses)}" if losses else ""


def _drops(finished: PaperRuns, runs: Sequence[FinishedRun]) -> dict[str, dict[int, float]]:
    """Task -> seed -> what pruning loses of the score with all heads, trained alike."""
    full = by_task(finished.runs(finished.first_group(*FULL)))
    kept = relative_to(by_task(runs), full)
    return {task: {seed: 1 - share for seed, share in kept[task].items()} for task in kept}


@tests("RA9", "chance")
def which_go(finished: PaperRuns) -> Sequence[Statistic]:
    """How often heads of the lower, middle and upper third go, in repeated clusterings."""
    gone = _gone(finished.runs("chance"))
    between = {ratio: gone[ratio] for ratio in gone if BETWEEN[0] <= ratio <= BETWEEN[1]}
    trials = {ratio: np.array([_thirds(layers) for layers in gone[ratio]]) for ratio in gone}
    every = np.mean([trials[ratio] for ratio in between], axis=0)  # (clustering, third)
    rows = {side: _gap(f"{side} third minus middle third", every, side) for side in SIDES}
    count = _spared("at any ratio from 25 to 75 %", between)
    note = (
        f"the smaller of two; the verdict is on the lower ({rows['lower'].verdict}) and the upper "
        f"third ({rows['upper'].verdict}) and on middle heads that never go ({count.value:g})"
    )
    first = noted(min(rows.values(), key=lambda row: row.value), note, [*rows.values(), count])
    by_ratio = [
        _gap(f"{side} third minus middle third at {percent(ratio)}", trials[ratio], side)
        for ratio in trials
        for side in SIDES
    ]
    alone = [_spared(f"at {percent(ratio)} alone", {ratio: gone[ratio]}) for ratio in gone]
    return [first, *rows.values(), count, *by_ratio, *alone, *_by_one(finished)]


def _by_one(finished: PaperRuns) -> list[Statistic]:
    """Middle heads that never go where heads are clustered by one distance."""
    runs: dict[str, list[FinishedRun]] = {}
    for run in finished.runs(ONE_CHANCE) if finished.is_whole(ONE_CHANCE) else []:
        runs.setdefault(" and ".join(run.at("distances")), []).append(run)
    return [_spared(f"at any ratio, clusters of {name} only", _gone(runs[name])) for name in runs]


def _spared(which: str, gone: Gone) -> Statistic:
    """Middle heads that never go, of some clusterings."""
    clusterings = [layers for of_ratio in gone.values() for layers in of_ratio]
    middle = np.array_split(np.arange(len(clusterings[0])), 3)[1]
    ever = np.any([_heads_of(layers, middle) for layers in clusterings], axis=0)
    never = int((~ever).sum())
    return Statistic(
        what=f"middle heads that never go, {which}",
        value=never,
        verdict="holds" if never else "does not hold",
        seeds=len(next(iter(gone.values()))),
        n=len(ever),
        of="heads of the middle third",
        note="a count of these clusterings: it has no interval",
    )


def _gone(runs: Iterable[FinishedRun]) -> Gone:
    """Ratio -> for every clustering, by layer, which heads went."""
    gone: dict[float, list[list[np.ndarray]]] = {}
    for run in runs:
        mask = run.mask
        stack = mask.layout.stacks[0]
        layers = [np.ones(heads, bool) for heads in stack.heads]
        for layer, heads in enumerate(layers):
            heads[list(mask.indices(stack.name, layer))] = False
        gone.setdefault(run.ratio, []).append(layers)
    return gone


def _heads_of(layers: Sequence[np.ndarray], which: np.ndarray) -> np.ndarray:
    return np.concatenate([layers[layer] for layer in which])


def _thirds(layers: Sequence[np.ndarray]) -> list[float]:
    """The share of heads that went in each third of the layers."""
    thirds = np.array_split(np.arange(len(layers)), 3)
    return [float(_heads_of(layers, third).mean()) for third in thirds]


def _gap(what: str, thirds: np.ndarray, side: str) -> Statistic:
    values = (thirds[:, SIDES[side]] - thirds[:, 1]).tolist()
    note = "the interval is over clusterings of one matrix of one model"
    size = SampleSize(len(values), "clusterings")
    return estimate(f"chance of being pruned, {what}", values, more_than(0.0), size, note)
