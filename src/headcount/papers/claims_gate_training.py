"""AutoAttention's claims on the gates themselves, tested (its sections 3.2 and 5): that they open
again, which layers lose most, and training against test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from headcount.papers.claims import Statistic, tests
from headcount.papers.claims_gates import OURS, primary
from headcount.papers.estimates import (
    SampleSize,
    absent,
    by_task,
    estimate,
    less_than,
    mean_of,
    minus,
    more_than,
    no_ratio,
    rows_scored,
)
from headcount.papers.finished import FinishedRun, PaperRuns
from headcount.statistics import rank_correlation


def _half(finished: PaperRuns, what: str) -> tuple[list[FinishedRun], list[Statistic]]:
    """Straight-through runs with half the heads removed; or the statistic without any."""
    runs = finished.runs("gates")
    half = primary(run for run in runs if run.ratio == 0.5)
    return half, [] if half else [no_ratio(what, 0.5, [run for run in runs if run.method == OURS])]


@tests("AA4", "gates")
def open_again(finished: PaperRuns) -> Sequence[Statistic]:
    """The share of gates that closed and opened again in training."""
    what = "share of gates that closed and opened again"
    runs, missing = _half(finished, what)
    if missing:
        return missing
    note = "Half the heads are asked for: all values are shifted alike in every step to get there."
    tested = _reopened(what, runs, note)
    if finished.is_whole("rates"):
        free = primary(finished.runs("rates"))
        tested += _reopened(f"{what}, no ratio asked for", free, "Over all learning rates.")
    return tested


def _reopened(what: str, runs: Sequence[FinishedRun], note: str) -> list[Statistic]:
    trained = [run for run in runs if run.gates]
    size = SampleSize(sum({run.task: run.heads for run in trained}.values()), "gates")
    reopened = _columns(trained, lambda run: run.gates["gates_reopened"] / run.heads)
    kept = _columns(trained, _kept_of_reopened)
    open_at_end = f"{what}: of those, open at the end"
    return [
        estimate(what, mean_of(reopened), more_than(0), size, note),
        estimate(open_at_end, mean_of(kept), more_than(0), size),
    ]


def _kept_of_reopened(run: FinishedRun) -> float:
    reopened = run.gates["gates_reopened"]
    return run.gates["gates_reopened_and_kept"] / reopened if reopened else math.nan


def _columns(
    runs: Iterable[FinishedRun], value: Callable[[FinishedRun], float]
) -> list[Mapping[int, float]]:
    """For every task, and every other axis but the seed, the values by seed."""
    columns: dict[tuple[str, ...], dict[int, float]] = {}
    for run in runs:
        others = (f"{name} {run.at(name)}" for name in run.cell.axes if name != "seed")
        if not math.isnan(number := value(run)):
            columns.setdefault((run.task, *others), {})[run.seed] = number
    return list(columns.values())


@tests("AA5", "gates")
def last_layers(finished: PaperRuns) -> Sequence[Statistic]:
    """The share of heads left in the last third of the layers minus that in the others."""
    what = "share of heads left, last third of the layers minus the others"
    runs, missing = _half(finished, what)
    if missing:
        return missing
    shares = np.mean([_by_layer(run) for run in runs], axis=0)
    note = f"Left by layer: {', '.join(f'{share:.2f}' for share in shares)}."
    size = SampleSize(runs[0].heads, "heads")
    gaps = by_task(runs, _last_minus_others)
    tested = [estimate(what, mean_of(gaps.values()), less_than(0), size, note)]
    for task in gaps if len(gaps) > 1 else ():
        tested.append(estimate(f"{what}, {task}", gaps[task], less_than(0), size))
    trend = by_task(runs, lambda run: rank_correlation(range(len(shares)), _by_layer(run))["rho"])
    what = "Spearman of layer and share of heads left"
    layers = SampleSize(len(shares), "layers")
    return [*tested, estimate(what, mean_of(trend.values()), less_than(0), layers)]


def _by_layer(run: FinishedRun) -> list[float]:
    """The share of heads left in every layer, over all stacks."""
    return [_share(layer) for layer in zip(*run.heads_left.values(), strict=False)]


def _share(layers: Iterable[tuple[int, int]]) -> float:
    left, heads = map(sum, zip(*layers, strict=True))
    return left / heads


def _last_minus_others(run: FinishedRun) -> float:
    layers = list(zip(*run.heads_left.values(), strict=False))
    start = len(layers) - max(1, len(layers) // 3)
    last, others = (
        _share(pair for layer in part for pair in layer)
        for part in (layers[start:], layers[:start])
    )
    return last - others


@tests("AA8", "gates")
def train_and_test(finished: PaperRuns) -> Sequence[Statistic]:
    """Score with training gates minus score with test gates, of noisy gates and of step gates."""
    what = "gap between training and test gates, hard-concrete minus straight-through"
    step, missing = _half(finished, what)
    runs = finished.runs("gates")
    noisy = [run for run in runs if run.method == "hard-concrete" and run.ratio == 0.5]
    if missing or not noisy:
        return missing or [absent(what, "No run of hard-concrete removes half the heads.")]
    noisy_gaps, step_gaps = (by_task(runs, lambda run: run.gate_gap) for runs in (noisy, step))
    gaps = minus(noisy_gaps, step_gaps)
    sizes = minus(_sizes(noisy_gaps), _sizes(step_gaps))
    zero = all(value == 0 for column in step_gaps.values() for value in column.values())
    note = "Step gates are the same in training and testing, so their gap is 0." if zero else ""
    noise = "A size is never below 0, so noise alone makes it larger."
    rows, rule = rows_scored(noisy), more_than(0)
    tested = [
        estimate(what, mean_of(gaps.values()), rule, rows, note),
        estimate(f"size of the {what}", mean_of(sizes.values()), rule, rows, noise),
    ]
    for task in gaps if len(gaps) > 1 else ():
        tested.append(estimate(f"{what}, {task}", gaps[task], rule))
    return tested


def _sizes(table: Mapping[str, Mapping[int, float]]) -> dict[str, dict[int, float]]:
    return {task: {seed: abs(gap) for seed, gap in table[task].items()} for task in table}
