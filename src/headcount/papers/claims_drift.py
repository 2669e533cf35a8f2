"""The claims of Why Can You Lay Off Heads? on fine-tuning, tested: LO4, LO6 and LO8."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from headcount.papers.claims import TestedStatistic, tests, worst
from headcount.papers.claims_tools import noted, ranks_go_together
from headcount.papers.finished import PaperRuns
from headcount.papers.seeds import at_least, at_most, measured, more_than
from headcount.statistics import correlation_interval

Recalls: TypeAlias = Mapping[str, Sequence[Mapping[str, Any]]]
"""Task -> what its runs recall with the heads that are kept for one share of the score."""
AT, RECALL, LITTLE = 0.75, 0.9, 0.10
FEW = 10
"""With fewer layers than this a reader is told that they are few."""


@tests("LO4", "drift")
def recalled(found: PaperRuns) -> Sequence[TestedStatistic]:
    """Of the heads a task needs, the share that is kept by pruning on the pre-training task.

    Then the same with more and with fewer heads kept: whether it is their number that is lacking.
    """
    shares: dict[float, dict[str, list[Mapping[str, Any]]]] = {}
    for each in found.runs("drift"):
        for row in each.record["recall"]:
            if row["needed"]:
                own = shares.setdefault(round(row["at"], 6), {})
                own.setdefault(str(each.at("task")), []).append(row)
    tasks = shares.pop(AT, {})
    if not tasks:
        return []
    first = _over_tasks(AT, tasks)
    rows = [_recall(AT, task, each) for task, each in tasks.items()] if len(tasks) > 1 else []
    seen = {_kept(tasks)}
    others: list[TestedStatistic] = []
    for share, each in sorted(shares.items()):
        if (kept := _kept(each)) not in seen:
            seen.add(kept)
            others.append(_over_tasks(share, each))
    return [first, *rows, *others]


def _kept(tasks: Recalls) -> float:
    return float(np.mean([row["kept"] for each in tasks.values() for row in each]))


def _over_tasks(share: float, tasks: Recalls) -> TestedStatistic:
    """The mean over tasks, with an interval over them; of a single one that over its heads."""
    every = [row for each in tasks.values() for row in each]
    chance = np.mean([row["chance"] for row in every])
    note = (
        f"{_kept(tasks):.3g} of {every[0]['heads']} heads are kept: as many at random recall "
        f"{chance:.3f}"
    )
    if len(tasks) == 1:
        ((task, own),) = tasks.items()
        return noted(_recall(share, task, own), f"the one task that needs heads; {note}")
    values = [_recall(share, task, own).value for task, own in tasks.items()]
    seeds = max(len(each) for each in tasks.values())
    return measured(
        f"recall at {share:g}, mean over tasks", values, at_least(RECALL), n=len(values),
        of="tasks", seeds=seeds, note=f"the interval is over tasks; {note}",
    )  # fmt: skip


def _recall(share: float, task: str, rows: Sequence[Mapping[str, Any]]) -> TestedStatistic:
    """One task: heads as if they were drawn, one by one."""
    from scipy.stats import binomtest

    both, needed = (sum(int(row[name]) for row in rows) for name in ("both", "needed"))
    ends = binomtest(both, needed).proportion_ci()
    low, high = float(ends.low), float(ends.high)
    note = f"chance {rows[0]['chance']:.3f}, p {rows[0]['p']:.2g}; exact binomial interval"
    return TestedStatistic(
        what=f"recall at {share:g}, {task}", value=both / needed, low=low, high=high,
        verdict=at_least(RECALL)(both / needed, low, high), seeds=len(rows), n=needed,
        of="heads the task needs", note=note,
    )  # fmt: skip


@tests("LO6", "drift")
def lower_layers(found: PaperRuns) -> Sequence[TestedStatistic]:
    """Layer against the mean JS divergence of its heads; of all tasks together, and of each."""
    js = _by_layer(found, "mean")
    what = "Spearman of layer and mean JS divergence"
    rows = [_trend(f"{what}, mean over {len(js)} tasks", list(js.values()))]
    rows += [_trend(f"{what}, {task}", [values]) for task, values in js.items()]
    largest, hidden = (list(_by_layer(found, name).values()) for name in ("max", "hidden"))
    rows.append(_trend("Spearman of layer and the JS divergence of its farthest head", largest))
    return [*rows, _trend("Spearman of layer and L2 distance of its output", hidden)]


def _by_layer(found: PaperRuns, name: str) -> dict[str, np.ndarray]:
    """Task -> a measure of drift for every layer of the first stack, mean over seeds."""
    out: dict[str, list[list[float]]] = {}
    for each in found.runs("drift"):
        layers = each.record["drift"]["layers"]
        own = [row[name] for row in layers if row["stack"] == layers[0]["stack"]]
        out.setdefault(str(each.at("task")), []).append(own)
    return {task: np.mean(values, axis=0) for task, values in out.items()}


def _trend(what: str, tasks: Sequence[np.ndarray]) -> TestedStatistic:
    values = np.mean(tasks, axis=0)
    layers = list(range(len(values)))
    note = "" if len(layers) >= FEW else f"{len(layers)} layers give little power"
    about = {"n": len(layers), "of": "layers", "note": note}
    return ranks_go_together(what, layers, values.tolist(), more_than(0.0), **about)


@tests("LO8", "drift")
def drift_and_importance(found: PaperRuns) -> Sequence[TestedStatistic]:
    """How far a head moves against its importance, on the task and on the pre-training task."""
    rows = list(_correlations(found))
    first = max(rows, key=lambda row: row.value)
    wide = correlation_interval(0.0, first.n)[1]
    note = (
        f"the largest of {len(rows)}, and the verdict on all of them; {first.n} heads leave an "
        f"interval of ± {wide:.2f} around no correlation"
    )
    if not wide <= LITTLE:
        note += f", so at most {LITTLE:.2f} cannot be shown with so few"
    return [noted(first, note, worst([row.verdict for row in rows])), *rows]


def _correlations(found: PaperRuns) -> Iterator[TestedStatistic]:
    """Every task with each importance; of several seeds the mean r, by Fisher's z."""
    each: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for run in found.runs("drift"):
        for name, own in run.record["correlations"].items():
            each.setdefault((name, str(run.at("task"))), []).append(own)
    for (name, task), own in each.items():
        known = [math.nan if row["pearson"] is None else row["pearson"] for row in own]
        r = float(np.tanh(np.mean(np.arctanh(known))))
        low, high = correlation_interval(r, own[0]["n"])
        least = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
        most = max(abs(low), abs(high))
        yield TestedStatistic(
            what=f"|Pearson r| of JS divergence and importance on {name}, {task}",
            value=abs(r), low=least, high=most, verdict=at_most(LITTLE)(abs(r), least, most),
            seeds=len(own), n=own[0]["n"], of="heads", note=f"r {r:+.3f} [{low:+.3f}, {high:+.3f}]",
        )  # fmt: skip
