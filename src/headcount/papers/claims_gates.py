"""The claims of AutoAttention (2022), tested: AA1 to AA3 on scores, AA4 to AA8 on the gates.

Scores of pruned models against other methods, and how many heads go with no loss (section 4). Of
the gates (3.2, 5 and 6): that they open again, which layers lose most, training against test, their
learning rate and their penalty.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from headcount.papers.claims import Statistic, tests
from headcount.papers.estimates import (
    ALPHA,
    ByTask,
    SampleSize,
    absent,
    at_least,
    by_task,
    each_task,
    estimate,
    less_than,
    mean_of,
    mean_over_seeds,
    minus,
    more_than,
    no_ratio,
    of_all,
    percent,
    relative_to,
    rows_scored,
    sentences,
    statistic,
)
from headcount.papers.finished import FinishedRun, PaperRuns
from headcount.statistics import compare_groups, correlation_interval, rank_correlation

OURS = "straight-through"
RIVALS = ("random", "importance", "hard-concrete", "meta")
PRINTED = ("softplus", "softplus-derivative")
"""The two readings of equation 10."""
READINGS = "gates-printed"
"""A group with the readings of equation 10 that `gates` has not; it need not be there."""
ROUNDING = 1e-9
Floor = Callable[[float], float]
"""From the score of all heads to the lowest that still counts as kept."""


def gradients(runs: Iterable[FinishedRun]) -> dict[str, list[FinishedRun]]:
    """What stands in for the step's derivative -> straight-through runs; as printed comes first."""
    readings: dict[str, list[FinishedRun]] = {}
    for run in runs:
        if run.method == OURS:
            readings.setdefault(run.gradient, []).append(run)
    return dict(sorted(readings.items(), key=lambda pair: pair[0] != PRINTED[0]))


def primary(runs: Iterable[FinishedRun]) -> list[FinishedRun]:
    """The straight-through runs of the first of these gradients."""
    return next(iter(gradients(runs).values()), [])


@tests("AA1", "gates")
def against_rivals(finished: PaperRuns) -> Sequence[Statistic]:
    """Straight-through gates against each rival with half the heads removed."""
    runs = finished.runs("gates") + finished.runs(READINGS)
    half = [run for run in runs if run.ratio == 0.5]
    readings = gradients(half)
    if not readings:
        what = f"score of {OURS} minus its closest rival's, half the heads removed"
        return [no_ratio(what, 0.5, [run for run in runs if run.method == OURS])]
    rivals = {name: by_task(run for run in half if run.method == name) for name in RIVALS}
    unread = ", ".join(name for name in PRINTED if name not in readings)
    rest = f"Readings of equation 10 that were not run: {unread}." if unread else ""
    tested = []
    for gradient, ours in readings.items():
        name = f"{OURS} ({gradient})" if len(readings) > 1 else OURS
        note = sentences(f"The gates' gradient is {gradient}.", rest)
        tested.append(_against(ours, rivals, name, note))
    return [*(rows[0] for rows in tested), *(row for rows in tested for row in rows[1:])]


def _against(
    runs: Sequence[FinishedRun], rivals: Mapping[str, ByTask], ours: str, note: str
) -> list[Statistic]:
    """The smallest difference first, then that to every rival, then the smallest of each task."""
    scores, size = by_task(runs), rows_scored(runs)
    tables = {name: minus(scores, table) for name, table in rivals.items()}
    means = {name: mean_of(table.values()) for name, table in tables.items()}
    gaps = {name: gap for name, gap in means.items() if gap}
    nothing = dict.fromkeys({seed for gap in gaps.values() for seed in gap}, 0.0)
    compared = compare_groups(gaps | {"": nothing}, "", higher_is_better=True)
    ps = {name: row["p_corrected"] for name, row in compared.items()}
    holm = {name: "unknown" if math.isnan(p) else f"{p:.3f}" for name, p in ps.items()}
    rows = {
        name: estimate(
            f"score of {ours} minus {name}", gap, more_than(0), size, f"Holm's p {holm[name]}."
        )
        for name, gap in gaps.items()
    }
    missing = [
        absent(f"score of {ours} minus {name}", f"No run of {name} removes half the heads.")
        for name in rivals
        if name not in gaps
    ]
    what = f"score of {ours} minus its closest rival's, half the heads removed"
    if not rows:
        return [absent(what, sentences("No rival has runs here.", note)), *missing]
    closest = min(rows, key=lambda name: rows[name].value)
    parts = (*rows.values(), *missing)
    verdict = of_all([tested.verdict for tested in parts])
    corrected = ", ".join(f"{name} {p}" for name, p in holm.items())
    note = sentences(f"The closest is {closest}; Holm's p: {corrected}.", note)
    first = replace(rows[closest], what=what, verdict=verdict, note=note, parts=parts)
    return [first, *rows.values(), *missing, *_closest_by_task(scores, tables, ours)]


def _closest_by_task(scores: ByTask, tables: Mapping[str, ByTask], ours: str) -> list[Statistic]:
    """For every task the difference to the rival that comes closest there."""
    rows = []
    for task in scores if len(scores) > 1 else ():
        gaps = {name: table[task] for name, table in tables.items() if task in table}
        if gaps:
            name = min(gaps, key=lambda rival: math.fsum(gaps[rival].values()) / len(gaps[rival]))
            what = f"score of {ours} minus its closest rival's ({name}), {task}"
            rows.append(estimate(what, gaps[name], more_than(0)))
    return rows


@tests("AA2", "gates", "gates-full")
def no_loss(finished: PaperRuns) -> Sequence[Statistic]:
    """The most heads that go without a lower score."""
    return _most_heads(finished, 0.57, {"with no loss": lambda score: score})


@tests("AA3", "gates", "gates-full")
def within_one(finished: PaperRuns) -> Sequence[Statistic]:
    """The most heads that go within one percent: a point of the score, or a share of it."""
    floors: dict[str, Floor] = {
        "within 1 point of the score": lambda score: score - 0.01,
        "within 1 % of the score": lambda score: score - 0.01 * abs(score),
    }
    note = (
        "Points come first: in the paper's table 3 at most 1.0 points are lost, but up to 1.8 % "
        "of the score."
    )
    return _most_heads(finished, 0.79, floors, note)


def _most_heads(
    finished: PaperRuns, threshold: float, floors: Mapping[str, Floor], note: str = ""
) -> list[Statistic]:
    """The highest sparsity that was tried and keeps the score, in several ways to say so."""
    runs = primary(finished.runs("gates"))
    full = by_task(finished.runs("gates-full"))
    if not runs:
        return [absent("highest sparsity", f"No run of {OURS} is among them.")]
    tried = ", ".join(map(percent, sorted({round(run.sparsity, 3) for run in runs})))
    note = sentences(f"Only what was tried can come out: {tried}, or 0.", note)

    def trained(run: FinishedRun) -> float:
        return full.get(run.task, {}).get(run.seed, math.nan)

    first, floor = next(iter(floors.items()))
    most = {name: _highest(runs, trained, floor) for name, floor in floors.items()}
    steady = _highest(runs, trained, floor, steady=True)
    given = _highest(runs, lambda run: run.score_before, floor)
    tables = {
        **{f"highest sparsity {name} of all heads trained alike": most[name] for name in most},
        f"highest sparsity up to which every one tried is {first}": steady,
        f"highest sparsity {first} of the model as given": given,
    }
    size, rule = rows_scored(runs), at_least(threshold)
    tested = [estimate(what, mean_of(tables[what].values()), rule, size, note) for what in tables]
    what = f"highest sparsity {first} of all heads trained alike"
    return [*tested, *each_task(what, most[first], rule)]


def _highest(
    runs: Sequence[FinishedRun],
    full: Callable[[FinishedRun], float],
    floor: Floor,
    *,
    steady: bool = False,
) -> dict[str, dict[int, float]]:
    """Task -> seed -> the highest sparsity that keeps the score; `steady`: and all below it do."""
    highest: dict[str, dict[int, float]] = {}
    broken: set[tuple[str, int]] = set()
    for run in sorted(runs, key=lambda run: run.sparsity):
        goal = full(run)
        if math.isnan(goal):
            continue
        best = highest.setdefault(run.task, {}).setdefault(run.seed, 0.0)
        if run.score >= floor(goal) - ROUNDING and (run.task, run.seed) not in broken:
            highest[run.task][run.seed] = max(best, run.sparsity)
        elif steady:
            broken.add((run.task, run.seed))
    return highest


COLLAPSE = 0.01
"""The penalty beyond which the score is said to collapse."""


def _half(finished: PaperRuns, what: str) -> tuple[list[FinishedRun], list[Statistic]]:
    """Straight-through runs with half the heads removed; or the statistic without any."""
    runs = finished.runs("gates")
    half = primary(run for run in runs if run.ratio == 0.5)
    return half, [] if half else [no_ratio(what, 0.5, [run for run in runs if run.method == OURS])]


@tests("AA4", "gates")
def open_again(finished: PaperRuns) -> Sequence[Statistic]:
    """The share of gates that closed and opened again in training."""
    what = "share of gates that closed and opened again"
    runs, missing = _half(finished, what)
    if missing:
        return missing
    note = "Half the heads are asked for: all values are shifted alike in every step to get there."
    tested = _reopened(what, runs, note)
    if finished.is_whole("rates"):
        free = primary(finished.runs("rates"))
        tested += _reopened(f"{what}, no ratio asked for", free, "Over all learning rates.")
    return tested


def _reopened(what: str, runs: Sequence[FinishedRun], note: str) -> list[Statistic]:
    trained = [run for run in runs if run.gates]
    size = SampleSize(sum({run.task: run.heads for run in trained}.values()), "gates")
    reopened = _columns(trained, _share_reopened)
    kept = _columns(trained, _kept_of_reopened)
    open_at_end = f"{what}: of those, open at the end"
    return [
        estimate(what, mean_of(reopened), more_than(0), size, note),
        estimate(open_at_end, mean_of(kept), more_than(0), size),
    ]


def _share_reopened(run: FinishedRun) -> float:
    return math.nan if run.gates is None else run.gates.gates_reopened / run.heads


def _kept_of_reopened(run: FinishedRun) -> float:
    gates = run.gates
    if gates is None or not gates.gates_reopened:
        return math.nan
    return gates.gates_reopened_and_kept / gates.gates_reopened


def _columns(
    runs: Iterable[FinishedRun], value: Callable[[FinishedRun], float]
) -> list[Mapping[int, float]]:
    """For every task, and every other axis but the seed, the values by seed."""
    columns: dict[tuple[str, ...], dict[int, float]] = {}
    for run in runs:
        others = (f"{name} {run.at(name)}" for name in run.cell.axes if name != "seed")
        if not math.isnan(number := value(run)):
            columns.setdefault((run.task, *others), {})[run.seed] = number
    return list(columns.values())


@tests("AA5", "gates")
def last_layers(finished: PaperRuns) -> Sequence[Statistic]:
    """The share of heads left in the last third of the layers minus that in the others."""
    what = "share of heads left, last third of the layers minus the others"
    runs, missing = _half(finished, what)
    if missing:
        return missing
    shares = np.mean([_by_layer(run) for run in runs], axis=0)
    note = f"Left by layer: {', '.join(f'{share:.2f}' for share in shares)}."
    size = SampleSize(runs[0].heads, "heads")
    gaps = by_task(runs, _last_minus_others)
    tested = [estimate(what, mean_of(gaps.values()), less_than(0), size, note)]
    tested += each_task(what, gaps, less_than(0), size)
    trend = by_task(runs, lambda run: rank_correlation(range(len(shares)), _by_layer(run))["rho"])
    what = "Spearman of layer and share of heads left"
    layers = SampleSize(len(shares), "layers")
    return [*tested, estimate(what, mean_of(trend.values()), less_than(0), layers)]


def _by_layer(run: FinishedRun) -> list[float]:
    """The share of heads left in every layer, over all stacks."""
    return [_share(layer) for layer in zip(*run.heads_left.values(), strict=False)]


def _share(layers: Iterable[tuple[int, int]]) -> float:
    left, heads = map(sum, zip(*layers, strict=True))
    return left / heads


def _last_minus_others(run: FinishedRun) -> float:
    layers = list(zip(*run.heads_left.values(), strict=False))
    start = len(layers) - max(1, len(layers) // 3)
    last, others = (
        _share(pair for layer in part for pair in layer)
        for part in (layers[start:], layers[:start])
    )
    return last - others


@tests("AA8", "gates")
def train_and_test(finished: PaperRuns) -> Sequence[Statistic]:
    """Score with training gates minus score with test gates, of noisy gates and of step gates."""
    what = "gap between training and test gates, hard-concrete minus straight-through"
    step, missing = _half(finished, what)
    runs = finished.runs("gates")
    noisy = [run for run in runs if run.method == "hard-concrete" and run.ratio == 0.5]
    if missing or not noisy:
        return missing or [absent(what, "No run of hard-concrete removes half the heads.")]
    noisy_gaps, step_gaps = (by_task(runs, lambda run: run.gate_gap) for runs in (noisy, step))
    gaps = minus(noisy_gaps, step_gaps)
    sizes = minus(_sizes(noisy_gaps), _sizes(step_gaps))
    zero = all(value == 0 for column in step_gaps.values() for value in column.values())
    note = "Step gates are the same in training and testing, so their gap is 0." if zero else ""
    noise = "A size is never below 0, so noise alone makes it larger."
    rows, rule = rows_scored(noisy), more_than(0)
    return [
        estimate(what, mean_of(gaps.values()), rule, rows, note),
        estimate(f"size of the {what}", mean_of(sizes.values()), rule, rows, noise),
        *each_task(what, gaps, rule),
    ]


def _sizes(table: Mapping[str, Mapping[int, float]]) -> dict[str, dict[int, float]]:
    return {task: {seed: abs(gap) for seed, gap in table[task].items()} for task in table}


@tests("AA6", "rates")
def learning_rates(finished: PaperRuns) -> Sequence[Statistic]:
    """Spearman correlation of the gates' learning rate and sparsity: of all runs, ranked within
    their task, then by seed.
    """
    from scipy.stats import rankdata

    runs = primary(finished.runs("rates"))
    what = "Spearman of the gates' learning rate and sparsity"
    tasks = dict.fromkeys(run.task for run in runs)
    x, y = [], []
    for task in tasks:
        for ranks, numbers in zip(
            (x, y), _rates([run for run in runs if run.task == task]), strict=True
        ):
            ranked = rankdata(numbers)
            ranks.extend(ranked - ranked.mean())
    if not runs or not np.ptp(x) or not np.ptp(y):
        return [absent(what, "Fewer than two learning rates, or one sparsity, in all runs.")]
    rho, p = float(np.corrcoef(x, y)[0, 1]), rank_correlation(x, y)["p"]
    low, high = correlation_interval(rho, len(x) - len(tasks) + 1, 1 + rho**2 / 2)
    closed = sum(run.all_closed for run in runs)
    note = f"All gates closed in {closed} of {len(runs)} runs (sparsity 1)." if closed else ""
    rhos = {
        seed: rank_correlation(*_rates([run for run in runs if run.seed == seed]))["rho"]
        for seed in sorted({run.seed for run in runs})
    }
    size = SampleSize(len(x), "runs", len(rhos))
    note = sentences(f"p {p:.2g}.", note)
    first = statistic(what, (rho, low, high), more_than(0), size, note, "z")
    if not p < ALPHA:  # perfectly ordered points give an interval without width
        first = replace(first, verdict="undecided")
    if len(tasks) > 1 or any(map(math.isnan, rhos.values())):
        return [first]
    return [first, estimate(f"{what}, each seed alone", rhos, more_than(0))]


def _rates(runs: Sequence[FinishedRun]) -> tuple[list[float], list[float]]:
    """The learning rates of the gates, and the sparsities."""
    return [run.at("gate_lr") for run in runs], [run.sparsity for run in runs]


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
