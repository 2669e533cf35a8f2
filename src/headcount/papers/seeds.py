"""What claims are tested on: values by task and seed, their mean over tasks with its interval.

    scores = by_task(found.runs("random", ratio=0.5))       # {"cola": {0: 0.51, 1: 0.55}}
    kept = relative_to(scores, by_task(found.runs("tuned")))
    measured("score kept", mean_of(kept.values()), at_least(0.99))

Tasks are taken as they are: for every seed the mean over them is one value, and the interval is
over seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from headcount.papers.claims import TestedStatistic, Word, above, below, worst
from headcount.papers.finished import FinishedRun
from headcount.statistics import interval

BySeed = Mapping[int, float]
ByTask = Mapping[str, BySeed]
Rule = Callable[[float, float, float], Word]
"""From a value and the ends of its interval to a verdict."""


def worth(run: FinishedRun) -> float:
    """A run's score; one that is undefined, as a correlation with a constant is, counts as 0."""
    return 0.0 if math.isnan(run.score) else run.score


def by_task(
    runs: Iterable[FinishedRun], value: Callable[[FinishedRun], float] = worth
) -> dict[str, dict[int, float]]:
    """Task -> seed -> a value of its run; what is not a number is left out."""
    found: dict[str, dict[int, float]] = {}
    for each in runs:
        number = value(each)
        if not math.isnan(number):
            found.setdefault(str(each.at("task")), {})[int(each.at("seed"))] = number
    return found


def relative_to(own: ByTask, whole: ByTask) -> dict[str, dict[int, float]]:
    """Every value as a share of the whole's of its task and seed; of 0 or less there is none."""
    return _joined(own, whole, lambda a, b: a / b if b > 0 else math.nan)


def minus(own: ByTask, other: ByTask) -> dict[str, dict[int, float]]:
    """Task -> seed -> the difference, where both have a value."""
    return _joined(own, other, lambda a, b: a - b)


def _joined(
    own: ByTask, other: ByTask, join: Callable[[float, float], float]
) -> dict[str, dict[int, float]]:
    found: dict[str, dict[int, float]] = {}
    for task in own:
        for seed, value in own[task].items():
            joined = join(value, other.get(task, {}).get(seed, math.nan))
            if not math.isnan(joined):
                found.setdefault(task, {})[seed] = joined
    return found


def mean_of(columns: Iterable[BySeed]) -> dict[int, float]:
    """For every seed that all columns have their mean.

    >>> mean_of([{0: 1.0, 1: 2.0}, {0: 3.0}])
    {0: 2.0}
    """
    every = list(columns)
    seeds = sorted(set.intersection(*(set(each) for each in every))) if every else []
    return {seed: math.fsum(each[seed] for each in every) / len(every) for seed in seeds}


def left_out(asked: Iterable[str], there: Iterable[str]) -> str:
    """A sentence on tasks of which nothing relative can be said; empty when there is none."""
    gone = [task for task in asked if task not in set(there)]
    return f"Left out, as the whole model scores 0 or less: {', '.join(gone)}." if gone else ""


def measured(
    what: str, values: BySeed | Sequence[float], rule: Rule, *, n: int = 0, of: str = "",
    seeds: int | None = None, note: str = "",
) -> TestedStatistic:  # fmt: skip
    """The mean of some values with its interval: by seed, or a list of which `seeds` are behind."""
    numbers = list(values.values()) if isinstance(values, Mapping) else list(values)
    if not numbers:
        return absent(what, note or "No run has what this needs.")
    value, low, high = interval(numbers)
    many = len(numbers) if seeds is None else seeds
    return TestedStatistic(
        what=what, value=value, low=low, high=high, verdict=rule(value, low, high), seeds=many,
        n=n or len(numbers), of=of or "seeds", note=note,
    )  # fmt: skip


def absent(what: str, note: str) -> TestedStatistic:
    """A statistic whose runs are not among those of the scale."""
    return TestedStatistic(what=what, value=math.nan, verdict="not run", note=note)


def ratio_of(run: FinishedRun) -> float:
    """The share of heads that was to be removed, be it an axis or not; NaN for none."""
    ratio = run.at("ratio")
    ratio = run.record.get("ratio") if ratio is None else ratio
    return float(ratio) if isinstance(ratio, int | float) else math.nan


def no_ratio(what: str, ratio: float, runs: Iterable[FinishedRun]) -> TestedStatistic:
    """A statistic at a ratio that was not tried."""
    tried = sorted({at for each in runs if not math.isnan(at := ratio_of(each))})
    there = ", ".join(map(percent, tried)) or "none"
    return absent(what, f"No run removes {percent(ratio)} of the heads; tried: {there}.")


def rows_behind(runs: Iterable[FinishedRun]) -> dict[str, Any]:
    """`n` and `of` of a score: the rows that were scored, of every task once."""
    rows = {str(each.at("task")): each.rows for each in runs}
    tasks = f" of {len(rows)} tasks" if len(rows) > 1 else ""
    return {"n": sum(rows.values()), "of": f"rows scored{tasks}"}


def at_least(threshold: float) -> Rule:
    """Holds on this side of the threshold, which is on it."""
    return lambda value, low, high: above(value, low, high, threshold)


def at_most(threshold: float) -> Rule:
    """Holds up to the threshold."""
    return lambda value, low, high: below(value, low, high, threshold)


def more_than(threshold: float) -> Rule:
    """Holds above the threshold, not on it: where nothing happened in any run, it does not."""
    return at_least(math.nextafter(threshold, math.inf))


def less_than(threshold: float) -> Rule:
    """Holds below the threshold, not on it."""
    return at_most(math.nextafter(threshold, -math.inf))


def no_difference(value: float, low: float, high: float) -> Word:
    """Holds while the interval includes 0."""
    if math.isnan(low) or math.isnan(high):
        return "undecided"
    return "holds" if low <= 0 <= high else "does not hold"


def unexcluded(tested: TestedStatistic) -> TestedStatistic:
    """The same with what it leaves open: that no difference was seen is no proof of none."""
    if not tested.low <= 0 <= tested.high:
        return tested
    reach = max(-tested.low, tested.high)
    said = f"A difference of up to {reach:.3g} either way is not excluded."
    return replace(tested, note=sentences(tested.note, said))


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


def heads_left(run: FinishedRun) -> dict[str, list[tuple[int, int]]]:
    """Stack -> (heads that stay, heads there were) for every layer."""
    mask = run.record["mask"]
    return {
        stack: [
            (len(own), heads)
            for own, heads in zip(kept, mask["layout"][stack]["heads"], strict=True)
        ]
        for stack, kept in mask["kept"].items()
    }
