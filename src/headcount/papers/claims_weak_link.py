"""The claims of On the weak link between importance and prunability (EMNLP 2020), tested.

Those on BERT (section 3.3): heads gone at random or by whole layers before fine-tuning, and how
far weights move after it. Those on translators are in `claims_translation`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from headcount.papers import claims_translation as claims_translation  # its tests come along
from headcount.papers.claims import TestedStatistic, Word, tests
from headcount.papers.finished import FinishedRun, PaperRuns
from headcount.papers.seeds import (
    ByTask,
    Rule,
    absent,
    by_task,
    heads_left,
    left_out,
    less_than,
    mean_of,
    measured,
    minus,
    more_than,
    no_difference,
    no_ratio,
    percent,
    ratio_of,
    relative_to,
    rows_behind,
    sentences,
    unexcluded,
)
from headcount.runs.products import scored_part

RELATIVE = "relative to all heads"
EVEN = 0.1
MOVED_OTHERWISE = {
    "moved-whole": "no head removed",
    "moved-slow": "a fifth of the learning rate",
}
"""Groups that vary one thing of `moved`, and what; they need not be there."""


@tests("WL4", "tuned", "random")
def _half_at_random(found: PaperRuns) -> Sequence[TestedStatistic]:
    """Half the heads drawn at random before fine-tuning: what is lost on average."""
    runs, full = found.runs("random"), found.runs("tuned")
    own = [each for each in runs if ratio_of(each) == 0.5]
    what = f"loss with half the heads, {RELATIVE}, mean over tasks"
    if not own:
        return [no_ratio(what, 0.5, runs)]
    whole, behind = by_task(full), rows_behind(own)
    lost = _lost(own, whole)
    first = measured(
        what, mean_of(lost.values()), less_than(0.01), note=left_out(by_task(own), lost), **behind
    )
    points = minus(whole, by_task(own))
    tested = [first, measured("loss in points of each task's metric", mean_of(points.values()),
                              less_than(0.01), **behind)]  # fmt: skip
    accuracy = minus(by_task(full, _accuracy), by_task(own, _accuracy))
    if accuracy and {each.metric for each in own} != {"accuracy"}:
        note = "The papers' tasks are scored by accuracy; tasks here that have one: "
        tested.append(
            measured("loss in points of accuracy", mean_of(accuracy.values()), less_than(0.01),
                     note=f"{note}{', '.join(accuracy)}.", **behind)
        )  # fmt: skip
    tested += [
        measured(f"loss with half the heads, {RELATIVE}, {task}", lost[task], less_than(0.01),
                 **rows_behind(found.runs("random", task=task)))
        for task in lost
    ]  # fmt: skip
    for ratio in sorted({ratio_of(each) for each in runs} - {0.5}):
        other = [each for each in runs if ratio_of(each) == ratio]
        tested.append(
            measured(f"loss with {percent(ratio)} of the heads removed, {RELATIVE}",
                     mean_of(_lost(other, whole).values()), less_than(0.01), **behind)
        )  # fmt: skip
    return tested


@tests("WL5", "tuned", "layers")
def _top_or_bottom(found: PaperRuns) -> Sequence[TestedStatistic]:
    """As many layers emptied at the top and at the bottom."""
    table, note = _emptied(found)
    gaps = {
        k: minus(table[f"top:{k}"], table[f"bottom:{k}"])
        for k in _numbers(table, r"top:(\d+)")
        if f"bottom:{k}" in table
    }
    what = f"score {RELATIVE}, top layers emptied minus bottom layers"
    if not any(gaps.values()):
        return [absent(what, sentences("No number of layers is emptied both ways.", note))]
    behind = rows_behind(found.runs("layers"))
    columns = [column for gap in gaps.values() for column in gap.values()]
    note = sentences(f"Layers emptied: {', '.join(map(str, gaps))}.", note)
    tested = [unexcluded(measured(what, mean_of(columns), no_difference, note=note, **behind))]
    tested += [
        measured(f"{what}, {k} of them", mean_of(gap.values()), no_difference, **behind)
        for k, gap in gaps.items()
    ]
    return [*tested, *_each_task(what, list(gaps.values()), no_difference)]


@tests("WL6", "tuned", "layers")
def _middle(found: PaperRuns) -> Sequence[TestedStatistic]:
    """The middle layers emptied against as many, half at the top and half at the bottom."""
    table, note = _emptied(found)
    gaps = {
        2 * k: minus(table[f"middle:{2 * k}"], table[f"top:{k}+bottom:{k}"])
        for k in _numbers(table, r"top:(\d+)\+bottom:\1")
        if f"middle:{2 * k}" in table
    }
    if not any(gaps.values()):
        nothing = "No number of layers is emptied both in the middle and at the ends."
        return [absent("share of pairs in which the middle is worse", sentences(nothing, note))]
    columns = [column for gap in gaps.values() for column in gap.values()]
    seeds = len(mean_of(columns))
    note = sentences("Pairs of a task share its data, so they are not quite independent.", note)
    each = [gap for column in columns for gap in column.values()]
    means = [math.fsum(column.values()) / len(column) for column in columns]
    what = f"score {RELATIVE}, middle layers emptied minus top and bottom"
    behind = rows_behind(found.runs("layers"))
    return [
        _sign_test("share of pairs in which the middle is worse", each, seeds, note),
        _sign_test("the same, one pair for a task and number of layers", means, seeds, ""),
        measured(what, mean_of(columns), less_than(0), **behind),
        *(
            measured(f"{what}, {many} of them", mean_of(gap.values()), less_than(0), **behind)
            for many, gap in gaps.items()
        ),
    ]


@tests("WL7", "tuned", "layers")
def _every_other(found: PaperRuns) -> Sequence[TestedStatistic]:
    """Every other layer emptied against half of them in a row, at the top and at the bottom."""
    table, left = _emptied(found)
    runs = found.runs("layers")
    layers = max((len(own) for each in runs for own in heads_left(each).values()), default=0)
    row = [f"top:{layers // 2}", f"bottom:{layers // 2}"]
    readings, by_task_alone = [], []
    for which, also in (("odd", "even"), ("even", "odd")):
        what = f"score {RELATIVE}, {which} layers emptied minus {' and '.join(row)}"
        missing = [each for each in (which, *row) if each not in table]
        if missing:
            readings.append(absent(what, f"No run empties {', '.join(missing)}."))
            continue
        gaps = [minus(table[which], table[each]) for each in row]
        columns = [column for gap in gaps for column in gap.values()]
        counted = (
            "Layers count from 0. The paper does not say whether it counts from 0 or 1: counted "
            f"from 1 these are its {also} ones."
        )
        note = sentences(counted, left)
        readings.append(
            measured(what, mean_of(columns), more_than(0), note=note, **rows_behind(runs))
        )
        by_task_alone += _each_task(what, gaps, more_than(0))
    return [*readings, *by_task_alone]


@tests("WL8", "moved")
def _even_movement(found: PaperRuns) -> Sequence[TestedStatistic]:
    """How far layers differ in the mean change of their weights, after each cut."""
    what = "largest difference of the mean weight change between two layers, relative to the mean"
    cuts, again = _spreads(found, "moved")
    spreads = [value for column in cuts.values() for value in column.values()]
    below = sum(value < EVEN for value in spreads)
    note = sentences(
        f"Below 10 % in {below} of {len(spreads)} runs; the interval is over them.",
        f"Runs that repeat another to the last digit count once: {', '.join(sorted(again))}."
        if again else "",
    )  # fmt: skip

    def rule(value: float, low: float, high: float) -> Word:
        word = less_than(EVEN)(value, low, high)
        return "undecided" if word == "holds" and below < len(spreads) else word

    seeds = len({seed for column in cuts.values() for seed in column})
    first = measured(what, spreads, rule, seeds=seeds, n=len(spreads), of="runs", note=note)
    rows = [measured(f"{what}, {name}", cuts[name], less_than(EVEN)) for name in cuts]
    for group, said in MOVED_OTHERWISE.items():
        if found.is_whole([group]):
            own = [value for each in _spreads(found, group)[0].values() for value in each.values()]
            rows.append(measured(f"{what}, {said}", own, less_than(EVEN), n=len(own), of="runs"))
    return [first, *rows]


def _spreads(found: PaperRuns, group: str) -> tuple[dict[str, dict[int, float]], set[str]]:
    """(cut -> seed -> how far layers differ, cuts with a run that repeats another)."""
    cuts: dict[str, dict[int, float]] = {}
    again: set[str] = set()
    told: dict[str, list[object]] = {}
    for each in found.runs(group):
        change, name = each.record["weight_change"], _cut(each)
        spread = change["spread"].get("all")
        if spread is None:
            continue
        if change["layers"] in told.setdefault(name, []):
            again.add(name)  # the same cut trained with the same seed
            continue
        told[name].append(change["layers"])
        cuts.setdefault(name, {})[int(each.at("seed"))] = float(spread)
    return cuts, again


def _lost(own: Sequence[FinishedRun], whole: ByTask) -> dict[str, dict[int, float]]:
    kept = relative_to(by_task(own), whole)
    return {task: {seed: 1 - kept[task][seed] for seed in kept[task]} for task in kept}


def _accuracy(run: FinishedRun) -> float:
    """The accuracy, where it is one of the run's scores."""
    every = (scored_part(run.record) or {}).get("scores") or {}
    value = (every.get("accuracy") or {}).get("value")
    return math.nan if value is None else float(value)


def _emptied(found: PaperRuns) -> tuple[dict[str, dict[str, dict[int, float]]], str]:
    """Which layers are emptied -> scores relative to all heads; and a note on tasks left out."""
    whole, runs = by_task(found.runs("tuned")), found.runs("layers")
    names = dict.fromkeys(str(each.at("empty")) for each in runs)
    own = {name: by_task(each for each in runs if each.at("empty") == name) for name in names}
    table = {name: relative_to(own[name], whole) for name in names}
    asked = dict.fromkeys(task for each in own.values() for task in each)
    there = {task for each in table.values() for task in each}
    return table, left_out(asked, there)


def _numbers(table: Mapping[str, object], pattern: str) -> list[int]:
    """The numbers of layers in names of this form, in order."""
    return sorted(int(match[1]) for name in table if (match := re.fullmatch(pattern, name)))


def _each_task(what: str, gaps: Sequence[ByTask], rule: Rule) -> list[TestedStatistic]:
    """The mean of some differences for every task alone; nothing where there is only one."""
    tasks = dict.fromkeys(task for gap in gaps for task in gap)
    if len(tasks) < 2:
        return []
    return [
        measured(f"{what}, {task}", mean_of(gap[task] for gap in gaps if task in gap), rule,
                 n=len(gaps), of="pairs of scores")
        for task in tasks
    ]  # fmt: skip


def _sign_test(what: str, gaps: Sequence[float], seeds: int, note: str) -> TestedStatistic:
    """How often a difference is below 0, with the exact interval of a share; ties are no pairs."""
    from scipy.stats import binomtest

    pairs = [gap for gap in gaps if gap != 0]
    if not pairs:
        return absent(what, "All pairs are ties.")
    test = binomtest(sum(gap < 0 for gap in pairs), len(pairs), 0.5)
    ends = test.proportion_ci()
    value, low, high = float(test.statistic), float(ends.low), float(ends.high)
    ties = len(gaps) - len(pairs)
    said = f"Sign test p {test.pvalue:.4f}" + (f"; ties, left out: {ties}." if ties else ".")
    return TestedStatistic(
        what=what, value=value, low=low, high=high, verdict=more_than(0.5)(value, low, high),
        seeds=seeds, n=len(pairs), of="pairs", note=sentences(said, note),
    )  # fmt: skip


def _cut(run: FinishedRun) -> str:
    """The cut that a run's model is from, in short."""
    asked = run.record["run"]["model"]
    options = asked["options"] if isinstance(asked, Mapping) else {}
    method, ratio = options.get("method", {}), options.get("ratio")
    which = method.get("empty", "") if ratio is None else percent(ratio)
    return f"{method.get('name', run.at('method'))} {which}".strip()
