"""The claims of Why Can You Lay Off Heads?, tested: LO1 to LO8.

On curves and frozen layers (LO1, 2, 3, 5 and 7), and on fine-tuning (LO4, 6 and 8).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from headcount.papers.claims import Statistic, tests
from headcount.papers.estimates import (
    SampleSize,
    at_least,
    at_most,
    by_task,
    estimate,
    less_than,
    mean_of,
    minus,
    more_than,
    most_tasks,
    noted,
    percent,
    rank_statistic,
    relative_to,
    rows_scored,
    statistic,
)
from headcount.papers.finished import FinishedRun, PaperRuns, number_of
from headcount.runs.kinds.train import Train
from headcount.runs.kinds.transfer import CorrelationValues, RecallValues
from headcount.statistics import correlation_interval

Curve: TypeAlias = Sequence[tuple[float, float]]
"""(share of heads that went, relative score), from all heads on."""
Curves: TypeAlias = Mapping[str, Mapping[int, Curve]]
"""Task -> seed -> curve."""

DEFAULT = "l1"
"""How the paper normalises importance after it has compared three ways."""
KEPT, SHARE, FROZEN = 0.9, 0.75, 0.98
AGAIN = "curve-again"
"""A group that measures importance again on the way; it need not be there."""
FULL = ("frozen-full", "tuned")
"""Groups of the model with nothing frozen; the first where its training is not that of others."""
SHARED_CURVES = ("shared-curve", "shared-large-curve")
"""Groups of tasks on which a model with shared layers is pruned; a scale need not have them."""
UNSHARED = "unshared-words"
"""A group of a model that is trained as the one with shared layers is, where there is one."""
SAMPLES = "seeds draw other rows to look at and to score"


def curves(finished: PaperRuns, group: str, **axes: object) -> dict[str, dict[int, Curve]]:
    """The curves of the relative score, with all heads as the first point of each."""
    points: dict[str, dict[int, list[tuple[float, float]]]] = {}
    for run in finished.runs(group, **axes):
        if not math.isnan(kept := run.relative_score):
            seeds = points.setdefault(run.task, {})
            seeds.setdefault(int(run.at("seed")), [(0.0, 1.0)]).append((run.sparsity, kept))
    return {
        task: {seed: sorted(curve, key=lambda point: point[0]) for seed, curve in seeds.items()}
        for task, seeds in points.items()
    }


def last_of(*tables: Curves) -> float:
    """The share of heads up to which all curves go."""
    return min(
        curve[-1][0] for tasks in tables for seeds in tasks.values() for curve in seeds.values()
    )


def area(curve: Curve, to: float) -> float:
    """The mean height of a curve from no head removed to this share of them (trapezoids).

    >>> round(area([(0.0, 1.0), (0.5, 1.0), (1.0, 0.0)], 1.0), 9), area([(0, 1), (1, 0)], 0.5)
    (0.75, 0.75)
    """
    x, y = (np.array(side, dtype=float) for side in zip(*curve, strict=True))
    inside = x < to
    xs, ys = np.append(x[inside], to), np.append(y[inside], np.interp(to, x, y))
    return float(np.trapezoid(ys, xs) / to)


def areas(tasks: Curves, to: float) -> dict[str, dict[int, float]]:
    """Task -> seed -> the area under the curve."""
    return {
        task: {seed: area(curve, to) for seed, curve in seeds.items()}
        for task, seeds in tasks.items()
    }


@tests("LO1", "curve")
def half_go(finished: PaperRuns) -> Sequence[Statistic]:
    """The relative score with half the heads gone, least important first, nothing trained."""
    rows = _half(finished, "curve", "importance measured once", normalize=DEFAULT)
    for name in ("none", "l2"):
        rows += _half(finished, "curve", f"normalised by {name}", normalize=name)[:1]
    if finished.is_whole(AGAIN):
        rows += _half(finished, AGAIN, "importance measured again on the way")
    return rows


def _half(finished: PaperRuns, group: str, way: str, **axes: object) -> list[Statistic]:
    runs = finished.runs(group, ratio=0.5, **axes)
    tasks = by_task(runs, lambda run: run.relative_score)
    if not tasks:
        return []
    what = "score with half the heads gone relative to all"
    note = f"{SAMPLES}; of accuracy much is left by guessing alone"
    mean, rule = mean_of(tasks.values()), more_than(KEPT)
    return [
        estimate(f"{what}, mean over tasks, {way}", mean, rule, rows_scored(runs), note),
        *(
            estimate(f"{what}, {task}, {way}", tasks[task], rule, rows_scored(_of(task, runs)))
            for task in tasks
        ),
    ]


def _of(task: str, runs: Sequence[FinishedRun]) -> list[FinishedRun]:
    return [run for run in runs if run.task == task]


@tests("LO2", "words", "shared-words")
def shared_layers(finished: PaperRuns) -> Sequence[Statistic]:
    """Areas under the curves of a model with layers of its own and of one that shares them."""
    tasks = [name for name in SHARED_CURVES if finished.cells.get(name)]
    unshared = finished.first_group(UNSHARED, "words")
    if not finished.is_whole(unshared, *(["curve", *tasks] if tasks else [])):
        return []
    rows = [_shared(finished, "curve", name, DEFAULT) for name in tasks]
    return [*rows[:1], _shared(finished, unshared, "shared-words", None), *rows[1:]]


def _shared(finished: PaperRuns, unshared: str, shared: str, norm: str | None) -> Statistic:
    axes = {"normalize": norm} if norm else {}
    # of one shared layer all norms rank alike, and some groups have one of them only
    norms = {run.at("normalize") for run in finished.runs(shared)}
    first = curves(finished, unshared, **axes)
    second = curves(finished, shared, **(axes if norm in norms else {}))
    to = last_of(first, second)
    apart = minus(areas(first, to), areas(second, to))
    heads = [finished.runs(group)[0].heads for group in (unshared, shared)]
    note = (
        f"areas up to {percent(to)} of the heads; {heads[0]} heads against {heads[1]}, as the "
        f"paper's models differ, too; {SAMPLES}"
    )
    what = f"area under the relative score, unshared minus shared, {', '.join(apart)} ({shared})"
    size = rows_scored(run for run in finished.runs(unshared) if run.task in apart)
    return estimate(what, mean_of(apart.values()), more_than(0.0), size, note)


@tests("LO3", "curve")
def normalised(finished: PaperRuns) -> Sequence[Statistic]:
    """Areas under the curves of importance normalised by l1 against l2 and against none."""
    every = {name: curves(finished, "curve", normalize=name) for name in ("l1", "l2", "none")}
    to = last_of(*every.values())
    size = rows_scored(finished.runs("curve"))
    rows, tasks = [], []
    for other in ("l2", "none"):
        apart = minus(areas(every["l1"], to), areas(every[other], to))
        what = f"area under the relative score, l1 minus {other}"
        mean = mean_of(apart.values())
        rows.append(estimate(f"{what}, mean over tasks", mean, more_than(0.0), size))
        tasks += [estimate(f"{what}, {task}", apart[task], more_than(0.0)) for task in apart]
    first = min(rows, key=lambda row: row.value)
    note = (
        f"the smaller of two, and the verdict on both (l2 {rows[0].verdict}, none "
        f"{rows[1].verdict}); {SAMPLES}"
    )
    return [noted(first, note, rows), *rows, *tasks]


@tests("LO5", "words")
def words_kept(finished: PaperRuns) -> Sequence[Statistic]:
    """The share of heads with which the masked language model first falls to 75 %."""
    runs = finished.runs("words")
    needed = [
        {seed: needed_for(curve, SHARE) for seed, curve in seeds.items()}
        for seeds in curves(finished, "words").values()
    ]
    metric, size = runs[0].metric, rows_scored(runs)
    note = f"between two ratios on a straight line; {SAMPLES}, the model is one"
    what = f"share of heads needed for {percent(SHARE)} of {metric}"
    rows = [estimate(what, mean_of(needed), less_than(0.5), size, note)]
    half = by_task(finished.runs("words", ratio=0.5), lambda run: run.relative_score)
    if mean := mean_of(half.values()):
        what = f"{metric} with half the heads relative to all"
        rows.append(estimate(what, mean, at_least(SHARE), size))
    return rows


def needed_for(curve: Curve, share: float) -> float:
    """The share of heads that is left where a curve, from all heads on, first falls to a share.

    What it is at its end where it never does.

    >>> needed_for([(0.0, 1.0), (0.5, 0.8), (0.7, 0.6), (0.9, 0.9)], 0.75)
    0.45
    """
    for (x, y), (further, lower) in pairwise(curve):
        if lower < share:
            return round(1 - (x + (further - x) * (y - share) / (y - lower)), 12)
    return 1 - curve[-1][0]


@tests("LO7", "tuned", "frozen")
def frozen(finished: PaperRuns) -> Sequence[Statistic]:
    """Fine-tuning with the lowest layers standing still, relative to fine-tuning all of them."""
    runs, full = finished.runs("frozen"), finished.runs(finished.first_group(*FULL))
    kept = relative_to(by_task(runs), by_task(full))
    what, rule = "score relative to fine-tuning all layers", at_least(FROZEN)
    tasks = [
        estimate(f"{what}, {task}", kept[task], rule, rows_scored(_of(task, runs))) for task in kept
    ]
    if not tasks:
        return []
    frozen = runs[0].run.options_as(Train).training.freeze
    note = (
        f"the lowest {frozen} layers and the embeddings frozen; "
        "the paper: 5 layers of 24; "
        f"the worst task keeps {min(task.value for task in tasks):.3f}"
    )
    what = "share of tasks that keep at least 98 % of the score"
    share = most_tasks(what, tasks, [task.value >= FROZEN for task in tasks], note)
    mean = mean_of(kept.values())
    return [share, *tasks, estimate("relative score, mean over tasks", mean, rule)]


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
    return [noted(first, note, rows), *rows]


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
            "z",
        )
