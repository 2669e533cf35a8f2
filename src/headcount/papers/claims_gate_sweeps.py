"""AutoAttention's claims on the gates' learning rate and penalty, tested (its section 6)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from headcount.papers.claims import Statistic, tests
from headcount.papers.claims_gates import primary
from headcount.papers.estimates import (
    ALPHA,
    SampleSize,
    absent,
    by_task,
    estimate,
    mean_of,
    mean_over_seeds,
    minus,
    more_than,
    relative_to,
    rows_scored,
    sentences,
    statistic,
)
from headcount.papers.finished import FinishedRun, PaperRuns
from headcount.statistics import correlation_interval, rank_correlation

COLLAPSE = 0.01
"""The penalty beyond which the score is said to collapse."""


@tests("AA6", "rates")
def learning_rates(finished: PaperRuns) -> Sequence[Statistic]:
    """Spearman correlation of the gates' learning rate and sparsity, within tasks."""
    runs = primary(finished.runs("rates"))
    what = "Spearman of the gates' learning rate and sparsity"
    tested = _ranked(what, runs, "gate_lr", lambda run: run.sparsity)
    return tested or [absent(what, "Fewer than two learning rates, or one sparsity, in all runs.")]


def _ranked(
    what: str, runs: Sequence[FinishedRun], axis: str, value: Callable[[FinishedRun], float]
) -> list[Statistic]:
    """Over all runs, ranked within their task; then by seed; nothing where nothing varies."""
    from scipy.stats import rankdata

    tasks = dict.fromkeys(run.task for run in runs)
    x, y = [], []
    for task in tasks:
        of_task = [run for run in runs if run.task == task]
        for side, numbers in ((x, [run.at(axis) for run in of_task]), (y, map(value, of_task))):
            ranks = rankdata(list(numbers))
            side.extend(ranks - ranks.mean())
    if not np.ptp(x) or not np.ptp(y):
        return []
    rho, p = float(np.corrcoef(x, y)[0, 1]), rank_correlation(x, y)["p"]
    low, high = correlation_interval(rho, len(x) - len(tasks) + 1, 1 + rho**2 / 2)
    closed = sum(run.all_closed for run in runs)
    note = f"All gates closed in {closed} of {len(runs)} runs (sparsity 1)." if closed else ""
    rhos: dict[int, float] = {}
    for seed in sorted({run.seed for run in runs}):
        of_seed = [run for run in runs if run.seed == seed]
        rhos[seed] = rank_correlation([run.at(axis) for run in of_seed], [*map(value, of_seed)])[
            "rho"
        ]
    # perfectly ordered points give an interval without width
    rule = more_than(0) if p < ALPHA else lambda *_: "undecided"
    size = SampleSize(len(x), "runs", len(rhos))
    note = sentences(f"p {p:.2g}.", note)
    first = statistic(what, (rho, low, high), rule, size, note)
    if len(tasks) > 1 or any(map(math.isnan, rhos.values())):
        return [first]
    return [first, estimate(f"{what}, each seed alone", rhos, more_than(0))]


@tests("AA7", "penalties")
def collapse(finished: PaperRuns) -> Sequence[Statistic]:
    """Relative scores with penalties up to the limit minus those beyond it."""
    runs: dict[float, list[FinishedRun]] = {}
    for run in sorted(primary(finished.runs("penalties")), key=lambda run: run.at("mu")):
        runs.setdefault(float(run.at("mu")), []).append(run)
    every = [run for of_mu in runs.values() for run in of_mu]
    what = f"score relative to the model as given, mu up to {COLLAPSE:g} minus mu above"
    beyond = [mu for mu in runs if mu > COLLAPSE]
    if not beyond or len(beyond) == len(runs):
        tried = ", ".join(f"{mu:g}" for mu in runs) or "none"
        return [absent(what, f"Penalties on both sides are needed; tried: {tried}.")]
    tables, by_mu = {}, []
    for mu, of_mu in runs.items():
        tables[mu] = relative_to(by_task(of_mu), by_task(of_mu, lambda run: run.score_before))
        sparsity = np.mean([run.sparsity for run in of_mu])
        mean = mean_over_seeds(tables[mu].values())
        by_mu.append(f"{mu:g}: {mean:.3f}, sparsity {sparsity:.2f}")
    closed = sum(run.all_closed for run in every)
    note = f"By mu: {'; '.join(by_mu)}."
    if closed:
        note += (
            f" All gates closed in {closed} of {len(every)} runs, which are scored without heads."
        )
    tested = []
    for name, most in ((what, COLLAPSE), (what.replace("0.01", "0.001"), 0.001)):
        low = mean_of(column for mu in runs if mu <= most for column in tables[mu].values())
        high = mean_of(column for mu in beyond for column in tables[mu].values())
        gap = minus({"": low}, {"": high}).get("", {})
        tested.append(estimate(name, gap, more_than(0), rows_scored(every), note))
        note = ""
    return tested
