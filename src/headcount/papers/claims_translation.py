"""The weak-link paper's claims on translators, tested: heads gone at random, by layer and by
component, then training (section 3.2 of the paper).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TypeVar

from headcount.papers.claims import Statistic, tests
from headcount.papers.estimates import (
    ByTask,
    SampleSize,
    absent,
    at_most,
    by_task,
    estimate,
    mean_of,
    mean_over_seeds,
    minus,
    no_difference,
    no_ratio,
    of_all,
    percent,
    rows_scored,
    sentences,
    statistic,
    unexcluded,
)
from headcount.papers.finished import FinishedRun, PaperRuns
from headcount.statistics import compare_pairs

LIMITS = {0.6: 0.15, 0.75: 1.0}
"""Share of heads removed -> BLEU that may be lost."""
Pattern = tuple[tuple[str, tuple[int, ...]], ...]
"""(stack, heads kept in each layer)"""
Level = Mapping[int, list[FinishedRun]]
"""Heads that stay -> runs that differ in their seed."""
Key = TypeVar("Key", bound=Hashable)


@tests("WL1", "mt-full", "mt-random")
def lost_at_random(finished: PaperRuns) -> Sequence[Statistic]:
    """BLEU of the full model minus BLEU of the pruned one, both trained on as long."""
    pairs = [("mt-full", "mt-random", "")]
    if finished.is_whole("mt-full-de", "mt-random-de"):
        pairs.append(("mt-full-de", "mt-random-de", ", into German"))
    claimed, others = [], []
    for full, pruned, which in pairs:
        scores, runs = by_task(finished.runs(full)), finished.runs(pruned)
        claimed += [_lost(scores, runs, ratio, most, which) for ratio, most in LIMITS.items()]
        for at in sorted({run.ratio for run in runs} - set(LIMITS)):
            limits = [most for ratio, most in LIMITS.items() if at < ratio]
            others += [_lost(scores, runs, at, most, which) for most in limits[:1]]
    word = of_all([tested.verdict for tested in claimed])
    claimed.sort(key=lambda tested: tested.verdict != word)  # what settles the claim comes first
    return [replace(claimed[0], parts=tuple(claimed)), *claimed[1:], *others]


def _lost(
    full: ByTask, runs: Sequence[FinishedRun], ratio: float, most: float, which: str
) -> Statistic:
    what = f"BLEU lost with {percent(ratio)} of the heads removed{which} (at most {most})"
    pruned = [run for run in runs if run.ratio == ratio]
    if not pruned:
        return no_ratio(what, ratio, runs)
    lost = minus(full, by_task(pruned))
    return estimate(what, mean_of(lost.values()), at_most(most), rows_scored(pruned))


@tests("WL2", "mt-patterns")
def kept_or_lost(finished: PaperRuns) -> Sequence[Statistic]:
    """A pattern that keeps the lower layers of the encoder against its mirror image."""
    patterns = _grouped(finished.runs("mt-patterns"), _pattern)
    kept: dict[int, list[FinishedRun]] = {}
    lost: dict[int, list[FinishedRun]] = {}
    for pattern, runs in patterns.items():
        mirror = patterns.get(tuple((stack, layers[::-1]) for stack, layers in pattern))
        if mirror and _keeps_lower(pattern):
            heads = sum(sum(layers) for _, layers in pattern)
            kept[heads], lost[heads] = runs, mirror
    what = "BLEU, layers thought important kept minus lost"
    if not kept:
        return [absent(what, "No two patterns are mirror images of each other.")]
    alone = len(patterns) - 2 * len(kept)
    note = f"Patterns without a mirror image, left out: {alone}." if alone else ""
    first, second = _two_by_two({"kept": kept, "lost": lost}, lambda *_: what)["kept", "lost"]
    by_ratio = [
        _over_seeds(f"{what}, {percent(runs[0].sparsity)} removed", {heads: runs}, lost)
        for heads, runs in sorted(kept.items(), reverse=True)
    ]
    return [replace(first, note=sentences(first.note, note)), second, *by_ratio]


@tests("WL3", "mt-components")
def by_component(finished: PaperRuns) -> Sequence[Statistic]:
    """Triples that differ in which component keeps fewest heads, two by two."""
    levels: dict[str, dict[int, list[FinishedRun]]] = {}
    for triple, runs in _grouped(finished.runs("mt-components"), _triple).items():
        counts = dict(triple)
        fewest = [stack for stack in counts if counts[stack] == min(counts.values())]
        if len(fewest) == 1:
            levels.setdefault(fewest[0], {})[sum(counts.values())] = runs
    if len(levels) < 3:
        starved = ", ".join(levels) or "none"
        return [absent("BLEU by component", f"Components that keep fewest in some run: {starved}.")]
    compared = _two_by_two(levels, lambda a, b: f"BLEU, fewest heads in {a} minus in {b}")
    pairs = sorted(compared.values(), key=lambda pair: -_clearness(pair[0]))
    word = of_all([first.verdict for first, _ in pairs])
    over_ratios, over_seeds = zip(*pairs, strict=True)
    return [replace(over_ratios[0], verdict=word, parts=over_ratios), *over_ratios[1:], *over_seeds]


def _two_by_two(
    levels: Mapping[str, Level], name: Callable[[str, str], str]
) -> dict[tuple[str, str], tuple[Statistic, Statistic]]:
    """Two ways to prune -> their difference with its interval over ratios, and over seeds."""
    means = {
        way: {heads: mean_over_seeds(by_task(runs).values()) for heads, runs in level.items()}
        for way, level in levels.items()
    }
    pairs = list(combinations(levels, 2))
    rows = compare_pairs(means, pairs, higher_is_better=True)
    compared = {}
    for a, b in pairs:
        row, what = rows[a, b], name(a, b)
        second = _over_seeds(what, levels[a], levels[b])
        p = row["p_corrected"]
        corrected = f"Holm's p {p:.3f}." if len(pairs) > 1 and not math.isnan(p) else ""
        note = sentences("The interval is over ratios, each the mean of its seeds.", corrected)
        ends = (row["mean"], row["low"], row["high"])
        size = SampleSize(int(row["seeds"]), "ratios", second.seeds)
        first = unexcluded(statistic(what, ends, no_difference, size, note))
        compared[a, b] = (first, replace(second, what=f"{what}, interval over seeds"))
    return compared


def _over_seeds(what: str, left: Level, right: Level) -> Statistic:
    """The difference at the ratios that both have, with its interval over seeds."""
    both = [heads for heads in left if heads in right]
    gaps = [minus(by_task(left[heads]), by_task(right[heads])) for heads in both]
    mean = mean_of(column for gap in gaps for column in gap.values())
    size = rows_scored(run for heads in both for run in left[heads])
    return unexcluded(estimate(what, mean, no_difference, size))


def _clearness(tested: Statistic) -> float:
    """How far from 0 a difference is, in halves of its interval."""
    wide = (tested.high - tested.low) / 2
    return abs(tested.value) / wide if wide > 0 else math.inf if tested.value else 0.0


def _grouped(
    runs: Iterable[FinishedRun], key: Callable[[FinishedRun], Key]
) -> dict[Key, list[FinishedRun]]:
    groups: dict[Key, list[FinishedRun]] = {}
    for run in runs:
        groups.setdefault(key(run), []).append(run)
    return groups


def _pattern(run: FinishedRun) -> Pattern:
    return tuple(run.mask.counts().items())


def _triple(run: FinishedRun) -> tuple[tuple[str, int], ...]:
    return tuple((stack, sum(layers)) for stack, layers in _pattern(run))


def _keeps_lower(pattern: Pattern) -> bool:
    """Whether the encoder keeps more heads in its lower half of layers than in its upper."""
    layers = dict(pattern).get("encoder", ())
    half = len(layers) // 2
    return sum(layers[:half]) > sum(layers[len(layers) - half :])
