"""AutoAttention's claims on the gates themselves, tested (its sections 3.2 and 5): that they open
again, which layers lose most, and training against test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from headcount.papers.claims import TestedStatistic, tests
from headcount.papers.finished import FinishedRun, PaperRuns
from headcount.papers.gate_runs import OURS, method_of, primary
from headcount.papers.seeds import (
    absent,
    by_task,
    heads_left,
    less_than,
    mean_of,
    measured,
    minus,
    more_than,
    no_ratio,
    ratio_of,
    rows_behind,
)
from headcount.statistics import rank_correlation


def _half(found: PaperRuns, what: str) -> tuple[list[FinishedRun], list[TestedStatistic]]:
    """Straight-through runs with half the heads removed; or what is said without any."""
    runs = found.runs("gates")
    own = primary(each for each in runs if ratio_of(each) == 0.5)
    tried = [each for each in runs if method_of(each) == OURS]
    return own, [] if own else [no_ratio(what, 0.5, tried)]


@tests("AA4", "gates")
def _open_again(found: PaperRuns) -> Sequence[TestedStatistic]:
    """The share of gates that closed and opened again in training."""
    what = "share of gates that closed and opened again"
    own, missing = _half(found, what)
    if missing:
        return missing
    asked = "Half the heads are asked for: all values are shifted alike in every step to get there."
    tested = _reopened(what, own, asked)
    if found.is_whole(("rates",)):
        free = primary(found.runs("rates"))
        tested += _reopened(f"{what}, no ratio asked for", free, "Over all learning rates.")
    return tested


def _reopened(what: str, runs: Sequence[FinishedRun], note: str) -> list[TestedStatistic]:
    there = [each for each in runs if "learned" in each.record]
    gates = sum(
        {str(each.at("task")): int(each.record["heads"]["before"]) for each in there}.values()
    )
    columns = _columns(
        there, lambda each: _learned(each, "gates_reopened") / each.record["heads"]["before"]
    )
    kept = _columns(there, _kept_of_reopened)
    behind: dict[str, Any] = {"n": gates, "of": "gates"}
    return [
        measured(what, mean_of(columns), more_than(0), note=note, **behind),
        measured(f"{what}: of those, open at the end", mean_of(kept), more_than(0), **behind),
    ]


def _learned(run: FinishedRun, name: str) -> float:
    return float(run.record["learned"][name])


def _kept_of_reopened(run: FinishedRun) -> float:
    reopened = _learned(run, "gates_reopened")
    return _learned(run, "gates_reopened_and_kept") / reopened if reopened else math.nan


def _columns(
    runs: Iterable[FinishedRun], value: Callable[[FinishedRun], float]
) -> list[Mapping[int, float]]:
    """For every task, and every other axis but the seed, the values by seed."""
    found: dict[tuple[str, ...], dict[int, float]] = {}
    for each in runs:
        number = value(each)
        others = (f"{name} {each.at(name)}" for name in each.cell.axes if name != "seed")
        if not math.isnan(number):
            found.setdefault((str(each.at("task")), *others), {})[each.seed] = number
    return list(found.values())


@tests("AA5", "gates")
def _last_layers(found: PaperRuns) -> Sequence[TestedStatistic]:
    """The share of heads left in the last third of the layers minus that in the others."""
    what = "share of heads left, last third of the layers minus the others"
    own, missing = _half(found, what)
    if missing:
        return missing
    shares = np.mean([_by_layer(each) for each in own], axis=0)
    note = f"Left by layer: {', '.join(f'{share:.2f}' for share in shares)}."
    heads = int(own[0].record["heads"]["before"])
    table = by_task(own, _last_minus_others)
    trend = by_task(own, lambda each: rank_correlation(range(len(shares)), _by_layer(each))["rho"])
    tested = [measured(what, mean_of(table.values()), less_than(0), n=heads, of="heads", note=note)]
    if len(table) > 1:
        tested += [
            measured(f"{what}, {task}", column, less_than(0), n=heads, of="heads")
            for task, column in table.items()
        ]
    means = mean_of(trend.values())
    name = "Spearman of layer and share of heads left"
    return [*tested, measured(name, means, less_than(0), n=len(shares), of="layers")]


def _by_layer(run: FinishedRun) -> list[float]:
    """The share of heads left in every layer, over all stacks."""
    stacks = heads_left(run).values()
    return [
        sum(left for left, _ in layer) / sum(heads for _, heads in layer)
        for layer in zip(*stacks, strict=False)
    ]


def _last_minus_others(run: FinishedRun) -> float:
    layers = list(zip(*heads_left(run).values(), strict=False))
    start = len(layers) - max(1, len(layers) // 3)
    parts = [
        [pair for layer in part for pair in layer] for part in (layers[start:], layers[:start])
    ]
    last, others = (sum(own for own, _ in part) / sum(of for _, of in part) for part in parts)
    return last - others


@tests("AA8", "gates")
def _train_and_test(found: PaperRuns) -> Sequence[TestedStatistic]:
    """Score with training gates minus score with test gates, of noisy gates and of step gates."""
    what = "gap between training and test gates, hard-concrete minus straight-through"
    own, missing = _half(found, what)
    noisy = [
        each
        for each in found.runs("gates")
        if method_of(each) == "hard-concrete" and ratio_of(each) == 0.5
    ]
    if missing or not noisy:
        return missing or [absent(what, "No run of hard-concrete removes half the heads.")]
    tables = {"hard-concrete": by_task(noisy, _gap), OURS: by_task(own, _gap)}
    sizes = {name: _size(table) for name, table in tables.items()}
    first = minus(tables["hard-concrete"], tables[OURS])
    size = minus(sizes["hard-concrete"], sizes[OURS])
    behind = rows_behind(noisy)
    zero = all(value == 0 for column in tables[OURS].values() for value in column.values())
    note = "Step gates are the same in training and testing, so their gap is 0." if zero else ""
    tested = [
        measured(what, mean_of(first.values()), more_than(0), note=note, **behind),
        measured(f"size of the {what}", mean_of(size.values()), more_than(0),
                 note="A size is never below 0, so noise alone makes it larger.", **behind),
    ]  # fmt: skip
    if len(first) > 1:
        tested += [measured(f"{what}, {task}", first[task], more_than(0)) for task in first]
    return tested


def _gap(run: FinishedRun) -> float:
    gap = run.record.get("learned", {}).get("gap") or {}
    value = gap.get("gap")
    return math.nan if value is None else float(value)


def _size(table: Mapping[str, Mapping[int, float]]) -> dict[str, dict[int, float]]:
    return {task: {seed: abs(gap) for seed, gap in own.items()} for task, own in table.items()}
