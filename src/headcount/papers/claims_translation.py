"""The weak-link paper's claims on translators, tested: heads gone at random, by layer and by
component, then training (section 3.2 of the paper).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TypeVar

from headcount.papers.claims import TestedStatistic, tests
from headcount.papers.finished import FinishedRun, PaperRuns
from headcount.papers.seeds import (
    ByTask,
    absent,
    at_most,
    by_task,
    heads_left,
    mean_of,
    measured,
    minus,
    no_difference,
    no_ratio,
    of_all,
    percent,
    ratio_of,
    rows_behind,
    sentences,
    unexcluded,
)
from headcount.statistics import compare_pairs

LIMITS = {0.6: 0.15, 0.75: 1.0}
"""Share of heads removed -> BLEU that may be lost."""
Pattern = tuple[tuple[str, tuple[int, ...]], ...]
"""(stack, heads kept in each layer)"""
Level = Mapping[int, list[FinishedRun]]
"""Heads that stay -> runs that differ in their seed."""
Key = TypeVar("Key", bound=Hashable)


@tests("WL1", "mt-full", "mt-random")
def _lost_at_random(found: PaperRuns) -> Sequence[TestedStatistic]:
    """BLEU of the whole model minus BLEU of the pruned one, both trained on as long."""
    pairs = [("mt-full", "mt-random", "")]
    if found.is_whole(("mt-full-de", "mt-random-de")):
        pairs.append(("mt-full-de", "mt-random-de", ", into German"))
    claimed, others = [], []
    for full, cut, which in pairs:
        whole, runs = by_task(found.runs(full)), found.runs(cut)
        claimed += [_lost(whole, runs, ratio, most, which) for ratio, most in LIMITS.items()]
        for at in sorted({ratio_of(each) for each in runs} - set(LIMITS)):
            limits = [most for ratio, most in LIMITS.items() if at < ratio]
            others += [_lost(whole, runs, at, most, which) for most in limits[:1]]
    word = of_all([each.verdict for each in claimed])
    claimed.sort(key=lambda each: each.verdict != word)  # the part that settles it comes first
    return [*claimed, *others]


def _lost(
    whole: ByTask, runs: Sequence[FinishedRun], ratio: float, most: float, which: str
) -> TestedStatistic:
    what = f"BLEU lost with {percent(ratio)} of the heads removed{which} (at most {most})"
    own = [each for each in runs if ratio_of(each) == ratio]
    if not own:
        return no_ratio(what, ratio, runs)
    lost = minus(whole, by_task(own))
    return measured(what, mean_of(lost.values()), at_most(most), **rows_behind(own))


@tests("WL2", "mt-patterns")
def _kept_or_lost(found: PaperRuns) -> Sequence[TestedStatistic]:
    """A pattern that keeps the lower layers of the encoder against its mirror image."""
    patterns = _grouped(found.runs("mt-patterns"), _pattern)
    kept: dict[int, list[FinishedRun]] = {}
    lost: dict[int, list[FinishedRun]] = {}
    for pattern, own in patterns.items():
        mirror = patterns.get(tuple((stack, layers[::-1]) for stack, layers in pattern))
        if mirror and _keeps_lower(pattern):
            heads = sum(sum(layers) for _, layers in pattern)
            kept[heads], lost[heads] = own, mirror
    what = "BLEU, layers thought important kept minus lost"
    if not kept:
        return [absent(what, "No two patterns are mirror images of each other.")]
    alone = len(patterns) - 2 * len(kept)
    note = f"Patterns without a mirror image, left out: {alone}." if alone else ""
    first, second = _two_by_two({"kept": kept, "lost": lost}, lambda *_: what)["kept", "lost"]
    by_ratio = [
        _over_seeds(f"{what}, {percent(own[0].sparsity)} removed", {heads: own}, lost)
        for heads, own in sorted(kept.items(), reverse=True)
    ]
    return [replace(first, note=sentences(first.note, note)), second, *by_ratio]


@tests("WL3", "mt-components")
def _by_component(found: PaperRuns) -> Sequence[TestedStatistic]:
    """Triples that differ in which component keeps fewest heads, two by two."""
    levels: dict[str, dict[int, list[FinishedRun]]] = {}
    for pattern, own in _grouped(found.runs("mt-components"), _triple).items():
        sums = {stack: sum(layers) for stack, layers in pattern}
        fewest = [stack for stack in sums if sums[stack] == min(sums.values())]
        if len(fewest) == 1:
            levels.setdefault(fewest[0], {})[sum(sums.values())] = own
    if len(levels) < 3:
        starved = ", ".join(levels) or "none"
        return [absent("BLEU by component", f"Components that keep fewest in some run: {starved}.")]
    compared = _two_by_two(levels, lambda a, b: f"BLEU, fewest heads in {a} minus in {b}")
    pairs = sorted(compared.values(), key=lambda pair: -_clearness(pair[0]))
    word = of_all([first.verdict for first, _ in pairs])
    over_ratios, over_seeds = zip(*pairs, strict=True)
    return [replace(over_ratios[0], verdict=word), *over_ratios[1:], *over_seeds]


def _two_by_two(
    levels: Mapping[str, Level], say: Callable[[str, str], str]
) -> dict[tuple[str, str], tuple[TestedStatistic, TestedStatistic]]:
    """Two kinds of cuts -> their difference with its interval over ratios, and over seeds."""
    means = {
        name: {heads: _mean(by_task(runs).values()) for heads, runs in level.items()}
        for name, level in levels.items()
    }
    pairs = list(combinations(levels, 2))
    rows = compare_pairs(means, pairs, higher_is_better=True)
    found = {}
    for a, b in pairs:
        row, other = rows[a, b], _over_seeds(say(a, b), levels[a], levels[b])
        value, low, high = row["mean"], row["low"], row["high"]
        p = row["p_corrected"]
        corrected = f"Holm's p {p:.3f}." if len(pairs) > 1 and not math.isnan(p) else ""
        over = "The interval is over ratios, each the mean of its seeds."
        first = TestedStatistic(
            what=say(a, b), value=value, low=low, high=high,
            verdict=no_difference(value, low, high), seeds=other.seeds, n=int(row["seeds"]),
            of="ratios", note=sentences(over, corrected),
        )  # fmt: skip
        found[a, b] = (unexcluded(first), replace(other, what=f"{other.what}, interval over seeds"))
    return found


def _over_seeds(what: str, own: Level, other: Level) -> TestedStatistic:
    """The difference at the ratios that both have, with its interval over seeds."""
    both = [heads for heads in own if heads in other]
    gaps = [minus(by_task(own[heads]), by_task(other[heads])) for heads in both]
    columns = [column for gap in gaps for column in gap.values()]
    behind = rows_behind([each for heads in both for each in own[heads]])
    return unexcluded(measured(what, mean_of(columns), no_difference, **behind))


def _mean(columns: Iterable[Mapping[int, float]]) -> float:
    values = list(mean_of(columns).values())
    return math.fsum(values) / len(values) if values else math.nan


def _clearness(tested: TestedStatistic) -> float:
    """How far from 0 a difference is, in halves of its interval."""
    wide = (tested.high - tested.low) / 2
    return abs(tested.value) / wide if wide > 0 else math.inf if tested.value else 0.0


def _grouped(
    runs: Iterable[FinishedRun], key: Callable[[FinishedRun], Key]
) -> dict[Key, list[FinishedRun]]:
    found: dict[Key, list[FinishedRun]] = {}
    for each in runs:
        found.setdefault(key(each), []).append(each)
    return found


def _pattern(run: FinishedRun) -> Pattern:
    return tuple(
        (stack, tuple(left for left, _ in layers)) for stack, layers in heads_left(run).items()
    )


def _triple(run: FinishedRun) -> Pattern:
    return tuple((stack, (sum(layers),)) for stack, layers in _pattern(run))


def _keeps_lower(pattern: Pattern) -> bool:
    """Whether the encoder keeps more heads in its lower half of layers than in its upper."""
    layers = dict(pattern).get("encoder", ())
    half = len(layers) // 2
    return sum(layers[:half]) > sum(layers[len(layers) - half :])
