"""AutoAttention's claims on the gates' learning rate and penalty, tested (its section 6)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from headcount.papers.claims import TestedStatistic, tests
from headcount.papers.finished import FinishedRun, PaperRuns
from headcount.papers.gate_runs import primary, score_before
from headcount.papers.seeds import (
    absent,
    by_task,
    mean_of,
    measured,
    minus,
    more_than,
    relative_to,
    rows_behind,
    sentences,
)
from headcount.statistics import correlation_interval, rank_correlation

ALPHA = 0.05
COLLAPSE = 0.01
"""The penalty beyond which the score is said to collapse."""


@tests("AA6", "rates")
def _rate(found: PaperRuns) -> Sequence[TestedStatistic]:
    """Spearman correlation of the gates' learning rate and sparsity, within tasks."""
    runs = primary(found.runs("rates"))
    what = "Spearman of the gates' learning rate and sparsity"
    tested = _ranked(what, runs, "gate_lr", lambda each: each.sparsity)
    return tested or [absent(what, "Fewer than two learning rates, or one sparsity, in all runs.")]


def _ranked(
    what: str, runs: Sequence[FinishedRun], axis: str, value: Callable[[FinishedRun], float]
) -> list[TestedStatistic]:
    """Over all runs, ranked within their task; then by seed; nothing where nothing varies."""
    from scipy.stats import rankdata

    tasks = dict.fromkeys(each.at("task") for each in runs)
    x, y = [], []
    for task in tasks:
        own = [each for each in runs if each.at("task") == task]
        for side, numbers in ((x, [each.at(axis) for each in own]), (y, map(value, own))):
            ranks = rankdata(list(numbers))
            side.extend(ranks - ranks.mean())
    if not np.ptp(x) or not np.ptp(y):
        return []
    rho = float(np.corrcoef(x, y)[0, 1])
    low, high = correlation_interval(rho, len(x) - len(tasks) + 1, 1 + rho**2 / 2)
    closed = sum("all_closed" in each.record for each in runs)
    note = f"All gates closed in {closed} of {len(runs)} runs (sparsity 1)." if closed else ""
    seeds = sorted({each.seed for each in runs})
    by_seed = {seed: [each for each in runs if each.seed == seed] for seed in seeds}
    rhos = {
        seed: rank_correlation([e.at(axis) for e in own], [value(e) for e in own])["rho"]
        for seed, own in by_seed.items()
    }
    p, word = rank_correlation(x, y)["p"], more_than(0)(rho, low, high)
    first = TestedStatistic(  # perfectly ordered points give an interval without width
        what=what, value=rho, low=low, high=high, verdict=word if p < ALPHA else "undecided",
        seeds=len(seeds), n=len(x), of="runs", note=sentences(f"p {p:.2g}.", note),
    )  # fmt: skip
    if len(tasks) > 1 or any(map(math.isnan, rhos.values())):
        return [first]
    return [first, measured(f"{what}, each seed alone", rhos, more_than(0))]


@tests("AA7", "penalties")
def _collapse(found: PaperRuns) -> Sequence[TestedStatistic]:
    """Relative scores with penalties up to the limit minus those beyond it."""
    runs = primary(found.runs("penalties"))
    penalties = sorted({float(each.at("mu")) for each in runs})
    what = f"score relative to the model as given, mu up to {COLLAPSE:g} minus mu above"
    beyond = [mu for mu in penalties if mu > COLLAPSE]
    if not beyond or len(beyond) == len(penalties):
        tried = ", ".join(f"{mu:g}" for mu in penalties) or "none"
        return [absent(what, f"Penalties on both sides are needed; tried: {tried}.")]
    tables = {
        mu: relative_to(by_task(own), by_task(own, score_before))
        for mu in penalties
        if (own := [each for each in runs if each.at("mu") == mu])
    }
    closed = [each for each in runs if "all_closed" in each.record]
    said = "; ".join(
        f"{mu:g}: {_mean(tables[mu]):.3f}, sparsity {_gone(runs, mu):.2f}" for mu in penalties
    )
    note = sentences(
        f"By mu: {said}.",
        f"All gates closed in {len(closed)} of {len(runs)} runs, which are scored without heads."
        if closed else "",
    )  # fmt: skip
    behind = rows_behind(runs)
    tested = []
    for name, most in ((what, COLLAPSE), (what.replace("0.01", "0.001"), 0.001)):
        low = [column for mu in penalties if mu <= most for column in tables[mu].values()]
        high = [column for mu in beyond for column in tables[mu].values()]
        gap = minus({"": mean_of(low)}, {"": mean_of(high)}).get("", {})
        tested.append(measured(name, gap, more_than(0), note=note, **behind))
        note = ""
    return tested


def _mean(table: Mapping[str, Mapping[int, float]]) -> float:
    values = list(mean_of(table.values()).values())
    return math.fsum(values) / len(values) if values else math.nan


def _gone(runs: Sequence[FinishedRun], mu: float) -> float:
    return float(np.mean([each.sparsity for each in runs if each.at("mu") == mu]))
