"""What would decide the claims that are undecided: how much more data, and how long that takes.

    outlooks = claims_power("reproduce/small")
    outlooks[0].word, outlooks[0].unit, outlooks[0].needed       # ("does not hold", "seeds", 17)

The effect that was seen and its spread are taken for the true ones; needed is the least with which
the interval lies on one side of the threshold in 80 % of repetitions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from headcount.papers.claims import Statistic, Verdict, Word, groups_of_claim
from headcount.papers.finished import PaperRuns
from headcount.papers.reproduce import judge_all, open_folders
from headcount.papers.scales import DataPaths, with_inputs
from headcount.statistics import seeds_needed
from headcount.statistics.intervals import Z

POWER, ALPHA = 0.8, 0.05
Z_POWER = 0.8416212335729143
"""The 80 % point of the normal distribution."""
MOST_PAIRS = 2000
"""Pairs of a sign test up to which a number is searched for."""
SEEDED = frozenset({"seeds", "models", "runs", "pairs", "clusterings"})
"""Units of which every seed brings as many."""
SCALES_OF: dict[str, tuple[Callable[[float], float], float]] = {
    "normal": (float, 0.0),
    "log": (math.log, 0.0),
    "z": (math.atanh, 3.0),
}
"""Law -> (the scale on which the interval is symmetric, points that its width does not count)."""


class Need(NamedTuple):
    """How much data decides a statistic, and how."""

    word: Word
    statistic: Statistic
    needed: int | None
    """Units of its sampling; None where no number of them does."""

    @property
    def times(self) -> float:
        """The needed units as a multiple of those that there are; 1 where it is decided."""
        sampling = self.statistic.sampling
        if self.statistic.verdict != "undecided":
            return 1.0
        if self.needed is None or sampling is None:
            return math.inf
        return self.needed / sampling.n


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """What it takes to decide an undecided claim at a scale."""

    verdict: Verdict
    need: Need
    seeds: int | None
    """Seeds to run besides those that there are; None where more seeds are no help."""
    hours: float | None
    """Of one run at a time for those seeds, by the durations in the records."""

    @property
    def text(self) -> str:
        """What it takes, in words."""
        sampling = self.need.statistic.sampling
        if sampling is None or self.need.needed is None:
            return "no number of runs, with what was seen"
        have = f"{self.need.needed} {sampling.unit} ({sampling.n} now)"
        if self.seeds is None:
            return f"{have}: another model or task, not more runs"
        runs = "" if sampling.unit == "seeds" else f", {self.seeds} seeds more"
        return have + runs + ("" if self.hours is None else f", {self.hours:.2g} h")

    def to_json(self) -> dict[str, object]:
        """A plain dict."""
        sampling = self.need.statistic.sampling
        return {
            "code": self.verdict.claim.code,
            "scale": self.verdict.scale,
            "verdict": self.verdict.word,
            "points_to": self.need.word,
            "decided_by": self.need.statistic.to_json(),
            "unit": sampling and sampling.unit,
            "n": sampling and sampling.n,
            "needed": self.need.needed,
            "more_seeds": self.seeds,
            "hours": self.hours,
        }


def claims_power(
    *folders: str | Path, scales: Iterable[str] | None = None, paths: DataPaths | None = None
) -> list[Outlook]:
    """What would decide each undecided claim of the runs in some folders, `reproduce/*` if none."""
    return outlooks(open_folders(folders, scales, paths))


def outlooks(scales: Sequence[tuple[str, PaperRuns]]) -> list[Outlook]:
    """What would decide each claim that is undecided by the runs of its scale."""
    finished = dict(scales)
    return [
        _outlook(verdict, finished[verdict.scale])
        for verdict in judge_all(scales)
        if verdict.word == "undecided"
    ]


def _outlook(verdict: Verdict, finished: PaperRuns) -> Outlook:
    need = need_of(verdict.tested[0])
    sampling, have = need.statistic.sampling, need.statistic.seeds
    if sampling is None or need.needed is None or sampling.unit not in SEEDED or not have:
        return Outlook(verdict=verdict, need=need, seeds=None, hours=None)
    seeds = math.ceil(need.needed * have / sampling.n) - have
    seconds = seconds_of_a_seed(finished, verdict.scale, groups_of_claim(verdict.claim.code))
    return Outlook(
        verdict=verdict,
        need=need,
        seeds=seeds if seconds else None,
        hours=seconds * seeds / 3600 if seconds else None,
    )


def seconds_of_a_seed(finished: PaperRuns, scale: str, groups: Iterable[str]) -> float:
    """How long the runs of one more seed take: those of groups that several seeds are run of."""
    names = dict.fromkeys(name for group in groups for name in with_inputs(scale, group))
    seconds = 0.0
    for name in names:
        runs = {run.cell.key: run for run in finished.runs(name)}.values()
        if (seeds := len({run.seed for run in runs})) > 1:
            seconds += math.fsum(float(run.record["seconds"]) for run in runs) / seeds
    return seconds


def need_of(tested: Statistic) -> Need:
    """What decides a statistic, or the one of its parts that it comes down to."""
    needs = [need_of(part) for part in tested.parts if part.verdict != "not run"]
    if tested.sampling is not None and tested.sampling.law == "most":
        return _most(tested, needs)
    if not needs:
        return _alone(tested)
    failing = [need for need in needs if need.word == "does not hold"]
    if failing:  # one of them settles it
        return min(failing, key=lambda need: need.times)
    return max(needs, key=lambda need: need.times)


def _most(tested: Statistic, needs: Sequence[Need]) -> Need:
    """More than half of the parts have to hold: the last that is needed for that, or against it."""
    holding = [need for need in needs if need.word == "holds"]
    holds = 2 * len(holding) > len(needs)
    which = holding if holds else [need for need in needs if need.word != "holds"]
    many = len(needs) // 2 + 1 if holds else (len(needs) + 1) // 2
    last = sorted(which, key=lambda need: need.times)[many - 1]
    return last._replace(word="holds" if holds else "does not hold")


def _alone(tested: Statistic) -> Need:
    sampling, value = tested.sampling, tested.value
    if tested.verdict != "undecided" or sampling is None:
        return Need(tested.verdict, tested, sampling and sampling.n)
    word = sampling.rule(value, value, value)
    return Need(word, tested, None if word == "undecided" else _needed(tested))


def _needed(tested: Statistic) -> int | None:
    sampling = tested.sampling
    if sampling is None or math.isnan(tested.value + tested.low + tested.high):
        return None
    value, n, threshold = tested.value, sampling.n, sampling.rule.threshold
    if sampling.law == "t":
        from scipy.stats import t

        half = (tested.high - tested.low) / 2
        spread = half / float(t.ppf(1 - ALPHA / 2, n - 1)) * math.sqrt(n)
        return seeds_needed(value - threshold, spread, alpha=ALPHA, power=POWER)
    if sampling.law == "share":
        return _pairs_needed(value, threshold)
    if value == threshold or (sampling.law == "z" and abs(value) == 1):
        return None
    scale, unused = SCALES_OF[sampling.law]
    at, low, high = map(scale, (value, tested.low, tested.high))
    ratio = max(at - low, high - at) * (1 + Z_POWER / Z) / abs(at - scale(threshold))
    return max(n + 1, math.ceil(unused + (n - unused) * ratio**2))


def _pairs_needed(share: float, threshold: float) -> int | None:
    """The fewest pairs of which the exact interval of a share excludes the threshold so often."""
    import numpy as np
    from scipy.stats import binom

    if share < threshold:
        share, threshold = 1 - share, 1 - threshold
    n = np.arange(1, MOST_PAIRS + 1)
    over = binom.isf(ALPHA / 2, n, threshold)  # with more than these the interval is above it
    enough = np.flatnonzero(binom.sf(over, n, share) >= POWER)
    return int(n[enough[0]]) if len(enough) else None
