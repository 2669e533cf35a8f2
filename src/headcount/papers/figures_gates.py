"""The tables and figures of AutoAttention, drawn from finished runs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from headcount.papers.claims_gates import OURS
from headcount.papers.estimates import percent
from headcount.papers.finished import FinishedRun, PaperRuns
from headcount.papers.numbers import PrintedTable
from headcount.papers.panels import Lines, lines_figure
from headcount.papers.sheets import Cell, DrawnItem, Sheet, Spread, spread
from headcount.runs.products import has_product, product_of

if TYPE_CHECKING:
    from headcount.changes.maps import AttentionMaps

ALL = "all-heads"
HALF = 0.5


def methods_at_half(finished: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Table 1: five ways to prune half the heads, with the same training."""
    full = finished.scores("gates-full", "task")
    scores = {(ALL, task): full[task] for task in full}
    scores |= finished.scores("gates", "method", "task", ratio=HALF)
    methods = list(dict.fromkeys(method for method, _ in scores))
    rows = [[method, *(spread(scores.get((method, task))) for task in full)] for method in methods]
    sheet = Sheet("Half the heads, the same training", ["heads", *full], rows)
    return DrawnItem([sheet.beside(printed, [{"method": method} for method in methods])])


def highest(finished: PaperRuns, task: str, method: str, allowed: float) -> Spread:
    """By seed the highest sparsity tried, in %, whose score is within `allowed` of all heads."""
    full = finished.scores("gates-full", "task")[task]
    scores = finished.scores("gates", "ratio", task=task, method=method)
    most = []
    for seed, whole in full.items():
        floor = whole * (1 - allowed)
        within = [ratio for ratio in scores if scores[ratio].get(seed, -np.inf) >= floor]
        most.append(100 * max(map(float, within), default=0.0))
    return Spread(tuple(most), 1)


def most_heads(finished: PaperRuns, printed: PrintedTable, *, allowed: float) -> DrawnItem:
    """Tables 2 (no loss) and 3 (within 1 %): the highest sparsity among those that were tried."""
    tasks = list(finished.scores("gates-full", "task"))
    methods = dict.fromkeys(run.method for run in finished.runs("gates"))
    ratios = sorted({run.ratio for run in finished.runs("gates", method=OURS)})
    tried = ", ".join(f"{100 * ratio:g}" for ratio in ratios)
    rows: list[list[Cell]] = [
        [method, *(highest(finished, task, method, allowed) for task in tasks)]
        for method in methods
    ]
    note = (
        "Sparsity in per cent, seed by seed against all heads with the same training; tried: "
        f"{tried}. Methods other than straight-through have fewer ratios on some tasks."
    )
    title = "Highest sparsity with no loss" if not allowed else "Highest sparsity within 1 %"
    sheets = [Sheet(title, ["method", *tasks], rows, note)]
    paper = [[one.at.get("task", ""), one, one.cell] for one in printed.where("sparsity")]
    if paper:
        sheets.append(Sheet("In the paper, %", ["task", "sparsity", "where"], paper))
    return DrawnItem(sheets)


def curves(finished: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Figure 2: score against sparsity, all methods, on the task that has them all."""
    every = finished.scores("gates-full", "task")
    task = max(every, key=lambda task: len(finished.scores("gates", "method", "ratio", task=task)))
    full = list(every[task].values())
    scores = finished.scores("gates", "method", "ratio", task=task)
    lines: dict[str, dict[float, list[float]]] = {}
    for (method, ratio), by_seed in scores.items():
        lines.setdefault(method, {0.0: full})[float(ratio)] = list(by_seed.values())
    metric = finished.runs("gates", task=task)[0].metric
    panel = Lines(task, lines, "share of heads removed", metric, level=float(np.mean(full)))
    ratios = sorted({ratio for _, ratio in scores})
    rows = [
        [method, *(spread(scores.get((method, ratio))) for ratio in ratios)] for method in lines
    ]
    note = f"All heads with the same training: {Spread(tuple(full))}."
    sheet = Sheet(f"Score on {task}", ["method", *map(percent, ratios)], rows, note)
    return DrawnItem([sheet], {"": lines_figure([panel])})


def attention_maps(finished: PaperRuns, printed: PrintedTable, *, large: bool) -> DrawnItem:
    """Figures 3 (all heads) and 4 (one head): where heads look before and after pruning."""
    from headcount.views.attention import closeup, overview

    pruned = finished.runs("shown")[0]
    note = f"{pruned.heads_kept} of {pruned.heads} heads stay ({pruned.mask.pattern} by layer)."
    full = pruned.run.inputs[0]
    kept = has_product(full, finished.ledger.folder_of(full.key))
    if not kept or not has_product(pruned.run, pruned.folder):  # records travel without models
        missing = "Where heads look is drawn from two models that are not here."
        return DrawnItem(notes=[note, missing])
    maps = _attention(finished, pruned)
    if large:
        maps = maps.only(layers=(max(head.layer for head in maps.layout),))
    figure = (closeup if large else overview)(maps, "encoder", ("all heads", "after the cut"))
    return DrawnItem(figures={"": figure}, notes=[note])


def _attention(finished: PaperRuns, pruned: FinishedRun) -> AttentionMaps:
    from headcount.changes.sentence import attention
    from headcount.models.load import load
    from headcount.tasks.catalog import read_task
    from headcount.tasks.loading import load_tokenizer

    full = finished.ledger.folder_of(pruned.run.inputs[0].key)
    task = read_task(str(pruned.run.task), pruned.run.source)
    text, pair, *_ = (*(column[0] for column in task.load(task.evaluation).texts), None)
    small = load(product_of(pruned.run, pruned.folder))
    return attention(
        load(full), str(text), pruned=small, pair=pair, tokenizer=load_tokenizer(str(full))
    )


def gates_over_time(finished: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Figure 5: gates at the start, in the middle and at the end."""
    from headcount.learned.trace import load_trace
    from headcount.views.gates import maps_figure, path_figure

    runs = finished.runs("gates", method=OURS, ratio=HALF)
    counts = {
        "closings": "closings",
        "reopenings": "reopenings",
        "gates that reopened": "gates_reopened",
        "of them kept": "gates_reopened_and_kept",
    }
    rows: list[list[Cell]] = [
        [
            run.task,
            run.seed,
            *(getattr(run.gates, name) for name in counts.values()),
            run.heads_kept,
        ]
        for run in runs
    ]
    trace = load_trace(runs[0].folder / "gates.npz")
    sheet = Sheet("Gates that closed and reopened", ["task", "seed", *counts, "heads kept"], rows)
    return DrawnItem([sheet], {"": maps_figure(trace), "path": path_figure(trace)})


def sweep(
    finished: PaperRuns, printed: PrintedTable, *, group: str, axis: str, label: str
) -> DrawnItem:
    """Figures 6 and 7: sparsity and score against one number of the gates."""
    runs: dict[float, list[FinishedRun]] = {}
    for run in finished.runs(group):
        runs.setdefault(float(run.at(axis)), []).append(run)
    removed = {value: tuple(run.sparsity for run in runs[value]) for value in runs}
    score = {value: tuple(run.score for run in runs[value]) for value in runs}
    rows: list[list[Cell]] = [
        [
            f"{value:g}",
            Spread(removed[value]),
            Spread(score[value]),
            float(np.mean([run.score_before for run in runs[value]])),
            f"{sum(run.all_closed for run in runs[value])} of {len(runs[value])}",
        ]
        for value in sorted(runs)
    ]
    columns = [label, "share of heads removed", "score", "all heads", "runs in which all closed"]
    task = str(finished.runs(group)[0].at("task"))
    panels = [
        Lines(task, {name: values}, label, name, logarithmic=True)
        for name, values in (("share of heads removed", removed), ("score", score))
    ]
    return DrawnItem([Sheet(f"{label} on {task}", columns, rows)], {"": lines_figure(panels, 2)})


def cost(finished: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Parameters, memory, operations and measured time, with all heads and after pruning.

    The paper counts attention modules alone, here the heads of all of them.
    """
    bench = finished.runs("cost")[0].bench
    dense, *others = bench.timings
    removed = next(timing for timing in others if timing.kind == "removed")
    left, flops = 1 - removed.sparsity, bench.share_of_flops
    heads = (dense.memory - removed.memory) / removed.sparsity
    pairs = {
        "megabytes, heads alone": (heads / 1e6, left * heads / 1e6),
        "megabytes, model": (dense.memory / 1e6, removed.memory / 1e6),
        "parameters, model": (dense.parameters, removed.parameters),
    }
    if flops is not None:
        share = "operations as a share of the model's"
        pairs[f"{share}, heads alone"] = (flops, left * flops)
        pairs[share] = (1.0, 1 - flops * (1 - left))
    rows: list[list[Cell]] = [
        [name, before, after, after / before, None, None] for name, (before, after) in pairs.items()
    ]
    for timing in others:
        ratio = [timing.ratio.median, timing.ratio.low, timing.ratio.high]
        before = 1000 * dense.seconds.median
        # after: as the paired rounds say, the one statistic
        rows.append([f"milliseconds, {timing.name}", before, before * ratio[0], *ratio])
    shape = f"{bench.class_}, {bench.batch} × {bench.reads}, {bench.threads} thread"
    rounds = f"{bench.rounds} paired rounds"
    note = f"{shape}; the ratio is the median of {rounds}, with its 95 % interval."
    columns = ["what", "all heads", "after the cut", "ratio", "low", "high"]
    return DrawnItem([Sheet("What half the heads cost", columns, rows, note)])


def left_by_layer(finished: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """How many heads each layer keeps."""
    kept: dict[str, list[tuple[int, ...]]] = {}
    for run in finished.runs("gates", method=OURS, ratio=HALF):
        *_, counts = run.mask.counts().values()
        kept.setdefault(run.task, []).append(counts)
    layers = range(max(len(counts) for runs in kept.values() for counts in runs))
    rows: list[list[Cell]] = [
        [task, *(Spread(tuple(float(counts[at]) for counts in runs), 1) for at in layers)]
        for task, runs in kept.items()
    ]
    columns = ["task", *(f"layer {at}" for at in layers)]
    return DrawnItem([Sheet("Heads left of half", columns, rows)])


FIGURES = {
    "table-1": methods_at_half,
    "table-2": partial(most_heads, allowed=0.0),
    "table-3": partial(most_heads, allowed=0.01),
    "figure-2": curves,
    "figure-3": partial(attention_maps, large=False),
    "figure-4": partial(attention_maps, large=True),
    "figure-5": gates_over_time,
    "figure-6": partial(sweep, group="rates", axis="gate_lr", label="gates' learning rate"),
    "figure-7": partial(sweep, group="penalties", axis="mu", label="penalty μ"),
    "cost": cost,
    "layers": left_by_layer,
}
