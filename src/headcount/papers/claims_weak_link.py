"""The claims of On the weak link between importance and prunability (EMNLP 2020), tested: WL4 to 8.

Those on BERT (section 3.3): heads gone at random or by whole layers before fine-tuning, and how
far weights move after it. Those on translators are in `claims_translation`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from headcount.papers.claims import Rule, Statistic, Word, tests
from headcount.papers.estimates import (
    ByTask,
    SampleSize,
    absent,
    by_task,
    each_task,
    estimate,
    left_out,
    less_than,
    mean_of,
    minus,
    more_than,
    no_difference,
    no_ratio,
    percent,
    relative_to,
    rows_scored,
    sentences,
    statistic,
    unexcluded,
)
from headcount.papers.finished import FinishedRun, PaperRuns
from headcount.pruning.layers import Layers

RELATIVE = "relative to all heads"
EVEN = 0.1
MOVED_OTHERWISE = {"moved-whole": "no head removed", "moved-slow": "a fifth of the learning rate"}
"""Groups that vary one thing of `moved`, and what; they need not be there."""


@tests("WL4", "tuned", "random")
def half_at_random(finished: PaperRuns) -> Sequence[Statistic]:
    """Half the heads drawn at random before fine-tuning: what is lost on average."""
    runs, full = finished.runs("random"), finished.runs("tuned")
    half = [run for run in runs if run.ratio == 0.5]
    what = f"loss with half the heads, {RELATIVE}"
    if not half:
        return [no_ratio(f"{what}, mean over tasks", 0.5, runs)]
    scores, size, rule = by_task(full), rows_scored(half), less_than(0.01)
    lost, points = _lost(half, scores), minus(scores, by_task(half))
    note = left_out(by_task(half), lost)
    tested = [
        estimate(f"{what}, mean over tasks", mean_of(lost.values()), rule, size, note),
        estimate("loss in points of each task's metric", mean_of(points.values()), rule, size),
    ]
    accuracy = minus(*(by_task(group, lambda run: run.accuracy) for group in (full, half)))
    if accuracy and {run.metric for run in half} != {"accuracy"}:
        note = "The papers' tasks are scored by accuracy; tasks here that have one: "
        note += f"{', '.join(accuracy)}."
        mean = mean_of(accuracy.values())
        tested.append(estimate("loss in points of accuracy", mean, rule, size, note))
    for task in lost:
        rows = rows_scored(finished.runs("random", task=task))
        tested.append(estimate(f"{what}, {task}", lost[task], rule, rows))
    for ratio in sorted({run.ratio for run in runs} - {0.5}):
        mean = mean_of(_lost([run for run in runs if run.ratio == ratio], scores).values())
        name = f"loss with {percent(ratio)} of the heads removed, {RELATIVE}"
        tested.append(estimate(name, mean, rule, size))
    return tested


@tests("WL5", "tuned", "layers")
def top_or_bottom(finished: PaperRuns) -> Sequence[Statistic]:
    """As many layers emptied at the top and at the bottom."""
    table, note = _emptied(finished)
    gaps = {
        k: minus(table[f"top:{k}"], table[f"bottom:{k}"])
        for k in _numbers(table, r"top:(\d+)")
        if f"bottom:{k}" in table
    }
    what = f"score {RELATIVE}, top layers emptied minus bottom layers"
    if not any(gaps.values()):
        return [absent(what, sentences("No number of layers is emptied both ways.", note))]
    size = rows_scored(finished.runs("layers"))
    mean = mean_of(column for gap in gaps.values() for column in gap.values())
    note = sentences(f"Layers emptied: {', '.join(map(str, gaps))}.", note)
    tested = [unexcluded(estimate(what, mean, no_difference, size, note))]
    for k, gap in gaps.items():
        name = f"{what}, {k} of them"
        tested.append(estimate(name, mean_of(gap.values()), no_difference, size))
    return [*tested, *_task_by_task(what, list(gaps.values()), no_difference)]


@tests("WL6", "tuned", "layers")
def middle(finished: PaperRuns) -> Sequence[Statistic]:
    """The middle layers emptied against as many, half at the top and half at the bottom."""
    table, note = _emptied(finished)
    gaps = {
        2 * k: minus(table[f"middle:{2 * k}"], table[f"top:{k}+bottom:{k}"])
        for k in _numbers(table, r"top:(\d+)\+bottom:\1")
        if f"middle:{2 * k}" in table
    }
    worse = "share of pairs in which the middle is worse"
    if not any(gaps.values()):
        nothing = "No number of layers is emptied both in the middle and at the ends."
        return [absent(worse, sentences(nothing, note))]
    columns = [column for gap in gaps.values() for column in gap.values()]
    mean = mean_of(columns)
    note = sentences("Pairs of a task share its data, so they are not quite independent.", note)
    pairs = [gap for column in columns for gap in column.values()]
    means = [math.fsum(column.values()) / len(column) for column in columns]
    what = f"score {RELATIVE}, middle layers emptied minus top and bottom"
    rule, size = less_than(0), rows_scored(finished.runs("layers"))
    return [
        _sign_test(worse, pairs, len(mean), note),
        _sign_test("the same, one pair for a task and number of layers", means, len(mean), ""),
        estimate(what, mean, rule, size),
        *(
            estimate(f"{what}, {count} of them", mean_of(gap.values()), rule, size)
            for count, gap in gaps.items()
        ),
    ]


@tests("WL7", "tuned", "layers")
def every_other(finished: PaperRuns) -> Sequence[Statistic]:
    """Every other layer emptied against half of them in a row, at the top and at the bottom."""
    table, without = _emptied(finished)
    runs = finished.runs("layers")
    layers = max((len(left) for run in runs for left in run.heads_left.values()), default=0)
    rows = [f"top:{layers // 2}", f"bottom:{layers // 2}"]
    readings, of_tasks = [], []
    for which, also in (("odd", "even"), ("even", "odd")):
        what = f"score {RELATIVE}, {which} layers emptied minus {' and '.join(rows)}"
        missing = [name for name in (which, *rows) if name not in table]
        if missing:
            readings.append(absent(what, f"No run empties {', '.join(missing)}."))
            continue
        gaps = [minus(table[which], table[row]) for row in rows]
        mean = mean_of(column for gap in gaps for column in gap.values())
        counting = (
            "Layers count from 0. The paper does not say whether it counts from 0 or 1: counted "
            f"from 1 these are its {also} ones."
        )
        note = sentences(counting, without)
        readings.append(estimate(what, mean, more_than(0), rows_scored(runs), note))
        of_tasks += _task_by_task(what, gaps, more_than(0))
    return [*readings, *of_tasks]


@tests("WL8", "moved")
def even_movement(finished: PaperRuns) -> Sequence[Statistic]:
    """How far layers differ in the mean change of their weights, after each pruning."""
    what = "largest difference of the mean weight change between two layers, relative to the mean"
    by_pruning, again = _spreads(finished, "moved")
    spreads = [value for column in by_pruning.values() for value in column.values()]
    below = sum(value < EVEN for value in spreads)
    note = f"Below 10 % in {below} of {len(spreads)} runs; the interval is over them."
    if again:
        names = ", ".join(sorted(again))
        note += f" Runs that repeat another to the last digit count once: {names}."

    def decide(value: float, low: float, high: float) -> Word:
        word = less_than(EVEN)(value, low, high)
        return "undecided" if word == "holds" and below < len(spreads) else word

    rule = Rule(EVEN, decide)
    seeds = len({seed for column in by_pruning.values() for seed in column})
    size = SampleSize(len(spreads), "runs", seeds)
    tested = [estimate(what, spreads, rule, size, note)]
    for name, column in by_pruning.items():
        tested.append(estimate(f"{what}, {name}", column, less_than(EVEN)))
    for group, varied in MOVED_OTHERWISE.items():
        if finished.is_whole(group):
            columns = _spreads(finished, group)[0].values()
            values = [value for column in columns for value in column.values()]
            size = SampleSize(len(values), "runs")
            tested.append(estimate(f"{what}, {varied}", values, less_than(EVEN), size))
    return tested


def _spreads(finished: PaperRuns, group: str) -> tuple[dict[str, dict[int, float]], set[str]]:
    """(pruning -> seed -> how far layers differ, prunings with a run that repeats another)."""
    spreads: dict[str, dict[int, float]] = {}
    again: set[str] = set()
    seen: dict[str, list[object]] = {}
    for run in finished.runs(group):
        change, name = run.transfer.weight_change, pruning_of(run)
        spread = change.spread.get("all")
        if spread is None:
            continue
        if change.layers in seen.setdefault(name, []):
            again.add(name)  # the same pruning trained with the same seed
            continue
        seen[name].append(change.layers)
        spreads.setdefault(name, {})[int(run.at("seed"))] = float(spread)
    return spreads, again


def pruning_of(run: FinishedRun) -> str:
    """How the model that a comparison starts from was pruned, in words."""
    options = run.pruned_by
    if options is None:
        return "all heads"
    if isinstance(options.method, Layers):
        return f"layers {options.method.empty}"
    share = percent(options.ratio) if isinstance(options.ratio, float) else "free"
    return f"{options.name} {share}"


def _lost(runs: Sequence[FinishedRun], full: ByTask) -> dict[str, dict[int, float]]:
    kept = relative_to(by_task(runs), full)
    return {task: {seed: 1 - kept[task][seed] for seed in kept[task]} for task in kept}


def _emptied(finished: PaperRuns) -> tuple[dict[str, dict[str, dict[int, float]]], str]:
    """Which layers are emptied -> scores relative to all heads; and a note on tasks left out."""
    full, runs = by_task(finished.runs("tuned")), finished.runs("layers")
    names = dict.fromkeys(str(run.at("empty")) for run in runs)
    scores = {name: by_task(run for run in runs if run.at("empty") == name) for name in names}
    table = {name: relative_to(scores[name], full) for name in names}
    tasks, compared = (
        dict.fromkeys(task for tasks in which.values() for task in tasks)
        for which in (scores, table)
    )
    return table, left_out(tasks, compared)


def _numbers(table: Mapping[str, object], pattern: str) -> list[int]:
    """The numbers of layers in names of this form, in order."""
    return sorted(int(match[1]) for name in table if (match := re.fullmatch(pattern, name)))


def _task_by_task(what: str, gaps: Sequence[ByTask], rule: Rule) -> list[Statistic]:
    """The mean of some differences for every task alone; nothing where there is only one."""
    tasks = dict.fromkeys(task for gap in gaps for task in gap)
    means = {task: mean_of(gap[task] for gap in gaps if task in gap) for task in tasks}
    return each_task(what, means, rule, SampleSize(len(gaps), "pairs of scores"))


def _sign_test(what: str, gaps: Sequence[float], seeds: int, note: str) -> Statistic:
    """How often a difference is below 0, with the exact interval of a share; ties are no pairs."""
    from scipy.stats import binomtest

    pairs = [gap for gap in gaps if gap != 0]
    if not pairs:
        return absent(what, "All pairs are ties.")
    test = binomtest(sum(gap < 0 for gap in pairs), len(pairs), 0.5)
    interval = test.proportion_ci()
    ends = (float(test.statistic), float(interval.low), float(interval.high))
    ties = len(gaps) - len(pairs)
    p = f"Sign test p {test.pvalue:.4f}" + (f"; ties, left out: {ties}." if ties else ".")
    size = SampleSize(len(pairs), "pairs", seeds)
    return statistic(what, ends, more_than(0.5), size, sentences(p, note), "share")
