"""Statistics that claims are tested by: values by task and seed, estimates, and the rules on them.

    scores = by_task(finished.runs("random", ratio=0.5))       # {"cola": {0: 0.51, 1: 0.55}}
    kept = relative_to(scores, by_task(finished.runs("tuned")))
    estimate("score kept", mean_of(kept.values()), at_least(0.99))

Tasks are taken as they are: for every seed the mean over them is one value, and the interval is
over seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from headcount.papers.claims import Law, Rule, Sampling, Statistic, Word, worst
from headcount.papers.finished import FinishedRun
from headcount.statistics import interval, rank_correlation

BySeed = Mapping[int, float]
ByTask = Mapping[str, BySeed]
Ends = tuple[float, float, float]
"""A value and the ends of its interval."""
ALPHA = 0.05


class SampleSize(NamedTuple):
    """What is behind a statistic: how many of what, and how many seeds."""

    n: int = 0
    of: str = "seeds"
    seeds: int | None = None


BY_SEED = SampleSize()
"""One value for every seed."""


def worth(run: FinishedRun) -> float:
    """A run's score; one that is undefined, as a correlation with a constant is, counts as 0."""
    return 0.0 if math.isnan(run.score) else run.score


def by_task(
    runs: Iterable[FinishedRun], value: Callable[[FinishedRun], float] = worth
) -> dict[str, dict[int, float]]:
    """Task -> seed -> a value of its run; what is not a number is left out."""
    values: dict[str, dict[int, float]] = {}
    for run in runs:
        number = value(run)
        if not math.isnan(number):
            values.setdefault(run.task, {})[int(run.at("seed"))] = number
    return values


def relative_to(scores: ByTask, full: ByTask) -> dict[str, dict[int, float]]:
    """Every score as a share of the full model's of its task and seed; of 0 or less there is none.

    >>> relative_to({"cola": {0: 0.4, 1: 0.3}}, {"cola": {0: 0.8}})
    {'cola': {0: 0.5}}
    """
    return _joined(scores, full, lambda a, b: a / b if b > 0 else math.nan)


def minus(left: ByTask, right: ByTask) -> dict[str, dict[int, float]]:
    """Task -> seed -> the difference, where both have a value."""
    return _joined(left, right, lambda a, b: a - b)


def _joined(
    left: ByTask, right: ByTask, join: Callable[[float, float], float]
) -> dict[str, dict[int, float]]:
    table: dict[str, dict[int, float]] = {}
    for task in left:
        for seed, value in left[task].items():
            joined = join(value, right.get(task, {}).get(seed, math.nan))
            if not math.isnan(joined):
                table.setdefault(task, {})[seed] = joined
    return table


def mean_of(columns: Iterable[BySeed]) -> dict[int, float]:
    """For every seed that all columns have their mean.

    >>> mean_of([{0: 1.0, 1: 2.0}, {0: 3.0}])
    {0: 2.0}
    """
    every = list(columns)
    seeds = sorted(set.intersection(*map(set, every))) if every else []
    return {seed: math.fsum(column[seed] for column in every) / len(every) for seed in seeds}


def mean_over_seeds(columns: Iterable[BySeed]) -> float:
    """The mean over columns and seeds; NaN without any.

    >>> mean_over_seeds([{0: 1.0, 1: 2.0}, {0: 3.0, 1: 4.0}])
    2.5
    """
    values = mean_of(columns).values()
    return math.fsum(values) / len(values) if values else math.nan


def left_out(tasks: Iterable[str], compared: Iterable[str]) -> str:
    """A sentence on tasks of which nothing relative can be said; empty when there is none."""
    gone = [task for task in tasks if task not in set(compared)]
    return f"Left out, as the whole model scores 0 or less: {', '.join(gone)}." if gone else ""


def estimate(
    what: str,
    values: BySeed | Sequence[float],
    rule: Rule,
    size: SampleSize = BY_SEED,
    note: str = "",
) -> Statistic:
    """The mean of some values with its interval; `values` are by seed, or `size` has the seeds."""
    numbers = list(values.values() if isinstance(values, Mapping) else values)
    if not numbers:
        return absent(what, note or "No run has what this needs.")
    seeds = len(numbers) if size.seeds is None else size.seeds
    unit = "seeds" if isinstance(values, Mapping) else size.of
    size = SampleSize(size.n or len(numbers), size.of, seeds)
    tested = statistic(what, interval(numbers), rule, size, note)
    return replace(tested, sampling=Sampling(unit, len(numbers), rule, "t"))


def each_task(what: str, table: ByTask, rule: Rule, size: SampleSize = BY_SEED) -> list[Statistic]:
    """An estimate for every task alone; none where there is only one."""
    tasks = table if len(table) > 1 else ()
    return [estimate(f"{what}, {task}", table[task], rule, size) for task in tasks]


def statistic(
    what: str, ends: Ends, rule: Rule, size: SampleSize, note: str = "", law: Law = "normal"
) -> Statistic:
    """A statistic whose interval is known, with the verdict of a rule."""
    value, low, high = ends
    return Statistic(
        what=what,
        value=value,
        low=low,
        high=high,
        verdict=rule(value, low, high),
        seeds=size.seeds or 0,
        n=size.n,
        of=size.of,
        note=note,
        sampling=Sampling(size.of, size.n, rule, law),
    )


def absent(what: str, note: str) -> Statistic:
    """A statistic whose runs are not among those of the scale."""
    return Statistic(what=what, value=math.nan, verdict="not run", note=note)


def no_ratio(what: str, ratio: float, runs: Iterable[FinishedRun]) -> Statistic:
    """A statistic at a ratio that was not tried."""
    tried = sorted({run.ratio for run in runs if not math.isnan(run.ratio)})
    names = ", ".join(map(percent, tried)) or "none"
    return absent(what, f"No run removes {percent(ratio)} of the heads; tried: {names}.")


def rank_statistic(
    what: str,
    x: Sequence[float],
    y: Sequence[float],
    rule: Rule,
    size: SampleSize = BY_SEED,
    note: str = "",
) -> Statistic:
    """Spearman's rho by Fisher's z; decided only where few orders of the points do as well.

    With all points in order the interval has no width, however few they are.
    """
    from headcount.changes.correlation import correlate

    fit, p = correlate(x, y), rank_correlation(x, y)["p"]
    ends = (fit.spearman, fit.spearman_low, fit.spearman_high)
    note = "; ".join(filter(None, (f"p {p:.2g}", note)))
    tested = statistic(what, ends, rule, size, note, "z")
    return tested if p < ALPHA else replace(tested, verdict="undecided")


def most_tasks(
    what: str, tasks: Sequence[Statistic], passed: Sequence[bool], note: str = ""
) -> Statistic:
    """Whether more than half of the tasks pass, each of them decided by its own interval.

    The value is the share of tasks that pass by their mean; the ends are the share that is sure
    to pass and the share that may.
    """
    words = [task.verdict for task in tasks]
    sure, possible = words.count("holds"), words.count("undecided")
    ends = (sum(passed) / len(passed), sure / len(words), (sure + possible) / len(words))
    size = SampleSize(len(tasks), "tasks", min(task.seeds for task in tasks))
    about = "the ends are the share of tasks that surely pass and that may"
    note = "; ".join(filter(None, (about, note)))
    share = statistic(what, ends, more_than(0.5), size, note, "most")
    return replace(share, parts=tuple(tasks))


def noted(tested: Statistic, note: str, parts: Sequence[Statistic] = ()) -> Statistic:
    """The same with one more thing to say, and the verdict on several where they decide."""
    both = "; ".join(filter(None, (tested.note, note)))
    word = worst([part.verdict for part in parts]) if parts else tested.verdict
    return replace(tested, note=both, verdict=word, parts=tuple(parts) or tested.parts)


def unexcluded(tested: Statistic) -> Statistic:
    """The same with what it leaves open: that no difference was seen is no proof of none."""
    if not tested.low <= 0 <= tested.high:
        return tested
    reach = max(-tested.low, tested.high)
    note = f"A difference of up to {reach:.3g} either way is not excluded."
    return replace(tested, note=sentences(tested.note, note))


def rows_scored(runs: Iterable[FinishedRun]) -> SampleSize:
    """The sample size of a score: the rows that were scored, of every task once."""
    rows = {run.task: run.rows for run in runs}
    tasks = f" of {len(rows)} tasks" if len(rows) > 1 else ""
    return SampleSize(sum(rows.values()), f"rows scored{tasks}")


def at_least(threshold: float) -> Rule:
    """Holds on this side of the threshold, which is on it."""

    def decide(value: float, low: float, high: float) -> Word:
        if math.isnan(low) or math.isnan(high):
            return "undecided"
        if low >= threshold and value >= threshold:
            return "holds"
        return "does not hold" if high < threshold else "undecided"

    return Rule(threshold, decide)


def at_most(threshold: float) -> Rule:
    """Holds up to the threshold."""
    mirrored = at_least(-threshold)
    return Rule(threshold, lambda value, low, high: mirrored(-value, -high, -low))


def more_than(threshold: float) -> Rule:
    """Holds above the threshold, not on it: where nothing happened in any run, it does not."""
    return at_least(math.nextafter(threshold, math.inf))


def less_than(threshold: float) -> Rule:
    """Holds below the threshold, not on it."""
    return at_most(math.nextafter(threshold, -math.inf))


def _includes_zero(value: float, low: float, high: float) -> Word:
    if math.isnan(low) or math.isnan(high):
        return "undecided"
    return "holds" if low <= 0 <= high else "does not hold"


no_difference = Rule(0.0, _includes_zero)
"""Holds while the interval includes 0."""


def of_all(words: Sequence[Word]) -> Word:
    """The verdict on a claim of several parts: one that does not hold settles it."""
    return "does not hold" if "does not hold" in words else worst(words)


def percent(share: float) -> str:
    """A share as people write it.

    >>> percent(0.5), percent(0.875)
    ('50 %', '87.5 %')
    """
    return f"{100 * share:.3g} %"


def sentences(*parts: str) -> str:
    """Those that say something, one after the other."""
    return " ".join(part for part in parts if part)
