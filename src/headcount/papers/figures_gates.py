"""The tables and figures of AutoAttention, drawn from finished runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from headcount.papers.finished import PaperRuns
from headcount.papers.numbers import PrintedTable
from headcount.papers.panels import Lines, lines_figure
from headcount.papers.seeds import percent
from headcount.papers.sheets import DrawnItem, Sheet, Spread, beside, spread
from headcount.runs.products import has_product, product_of

if TYPE_CHECKING:
    from headcount.changes.maps import AttentionMaps

GATES = "straight-through"
ALL = "all-heads"
HALF = 0.5


def methods_at_half(found: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Table 1: five ways to prune half the heads, with the same training."""
    full = found.scores("gates-full", "task")
    own = found.scores("gates", "method", "task", ratio=HALF)
    methods = list(dict.fromkeys(method for method, _ in own))
    tasks = list(full)
    rows: list[list[Any]] = [[ALL, *(spread(full[task]) for task in tasks)]]
    rows += [[method, *(spread(own.get((method, task))) for task in tasks)] for method in methods]
    places: list[dict[str, Any]] = [{"method": ALL}, *({"method": each} for each in methods)]
    names, extra = beside(printed, places)
    sheet = Sheet(title="Half the heads, the same training", columns=["heads", *tasks, *names],
                  rows=[[*row, *more] for row, more in zip(rows, extra, strict=True)])  # fmt: skip
    return DrawnItem(sheets=[sheet])


def highest(found: PaperRuns, task: str, method: str, allowed: float) -> dict[int, float]:
    """Seed -> the highest sparsity tried whose score is within `allowed` of all heads."""
    full = found.scores("gates-full", "task")[task]
    own = found.scores("gates", "ratio", task=task, method=method)
    out: dict[int, float] = {}
    for seed, whole in full.items():
        within = [
            float(ratio)
            for ratio, scores in own.items()
            if seed in scores and scores[seed] >= whole * (1 - allowed)
        ]
        out[seed] = max(within, default=0.0)
    return out


def most_heads(found: PaperRuns, printed: PrintedTable, *, allowed: float) -> DrawnItem:
    """Tables 2 (no loss) and 3 (within 1 %): the highest sparsity among those that were tried."""
    tasks = list(found.scores("gates-full", "task"))
    methods = list(dict.fromkeys(each.at("method") for each in found.runs("gates")))
    tried = sorted({float(each.at("ratio")) for each in found.runs("gates", method=GATES)})
    rows = []
    for method in methods:
        cells = [highest(found, task, method, allowed) for task in tasks]
        rows.append([method, *(Spread(tuple(100 * v for v in each.values()), 1) for each in cells)])
    said = ", ".join(f"{100 * each:g}" for each in tried)
    note = (
        "Sparsity in per cent, seed by seed against all heads with the same training; tried: "
        f"{said}. Methods other than straight-through have fewer ratios on some tasks."
    )
    title = "Highest sparsity with no loss" if not allowed else "Highest sparsity within 1 %"
    sheets = [Sheet(title=title, columns=["method", *tasks], rows=rows, note=note)]
    paper = [each for each in printed.numbers if each.metric == "sparsity"]
    if paper:
        sheets.append(Sheet(
            title="In the paper, %", columns=["task", "sparsity", "where"],
            rows=[[each.at.get("task", ""), each, each.cell] for each in paper],
        ))  # fmt: skip
    return DrawnItem(sheets=sheets)


def curves(found: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Figure 2: score against sparsity, all methods, on the task that has them all."""
    tasks = list(found.scores("gates-full", "task"))
    counts = {task: len(found.scores("gates", "method", "ratio", task=task)) for task in tasks}
    task = max(counts, key=lambda name: counts[name])
    full = list(found.scores("gates-full", "task")[task].values())
    own = found.scores("gates", "method", "ratio", task=task)
    lines: dict[str, dict[float, list[float]]] = {}
    for (method, ratio), scores in own.items():
        lines.setdefault(method, {0.0: full})[float(ratio)] = list(scores.values())
    metric = found.runs("gates", task=task)[0].metric
    panel = Lines(title=task, lines=lines, x="share of heads removed", y=metric,
                  level=float(np.mean(full)))  # fmt: skip
    ratios = sorted({ratio for _, ratio in own})
    rows = [[method, *(spread(own.get((method, ratio))) for ratio in ratios)] for method in lines]
    sheet = Sheet(
        title=f"Score on {task}",
        columns=["method", *(percent(ratio) for ratio in ratios)],
        rows=rows,
        note=f"All heads with the same training: {Spread(tuple(full))}.",
    )
    return DrawnItem(sheets=[sheet], figures={"": lines_figure([panel])})


def attention_maps(found: PaperRuns, printed: PrintedTable, *, large: bool) -> DrawnItem:
    """Figures 3 (all heads) and 4 (one head): where heads look before and after the cut."""
    from headcount.views.attention import closeup, overview

    cut = found.runs("shown")[0]
    row = cut.record["heads"]
    note = f"{row['after']} of {row['before']} heads stay ({row['kept']} by layer)."
    before = cut.run.inputs[0]
    kept = has_product(before, found.ledger.folder_of(before.key))
    if not kept or not has_product(cut.run, cut.folder):  # records travel without models
        return DrawnItem(
            notes=[note, "Where heads look is drawn from two models that are not here."]
        )
    maps = _attention(found)
    names = ("all heads", "after the cut")
    if large:
        maps = maps.only(layers=(_last(maps),))
    figure = (closeup if large else overview)(maps, "encoder", names)
    return DrawnItem(figures={"": figure}, notes=[note])


def _last(maps: AttentionMaps) -> int:
    return max(head.layer for head in maps.layout)


def _attention(found: PaperRuns) -> AttentionMaps:
    from headcount.changes.sentence import attention
    from headcount.models.load import load
    from headcount.tasks.catalog import TASKS
    from headcount.tasks.loading import load_tokenizer

    cut = found.runs("shown")[0]
    base = found.ledger.folder_of(cut.run.inputs[0].key)
    task = TASKS[str(cut.run.task)](cut.run.source)
    first = [column[0] for column in task.load(task.evaluation).texts]
    small = load(product_of(cut.run, cut.folder))
    pair = first[1] if len(first) > 1 else None
    how = {"pair": pair, "tokenizer": load_tokenizer(str(base))}
    return attention(load(base), first[0], pruned=small, **how)


def gates_over_time(found: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Figure 5: gates at the start, in the middle and at the end."""
    from headcount.learned.trace import load_trace
    from headcount.views.gates import maps_figure, path_figure

    runs = found.runs("gates", method=GATES, ratio=HALF)
    rows = []
    for each in runs:
        learned = each.record["learned"]
        rows.append([each.at("task"), each.seed, learned["closings"], learned["reopenings"],
                     learned["gates_reopened"], learned["gates_reopened_and_kept"],
                     each.record["heads"]["after"]])  # fmt: skip
    columns = ["task", "seed", "closings", "reopenings", "gates that reopened",
               "of them kept", "heads kept"]  # fmt: skip
    trace = load_trace(runs[0].folder / "gates.npz")
    return DrawnItem(
        sheets=[Sheet(title="Gates that closed and reopened", columns=columns, rows=rows)],
        figures={"": maps_figure(trace), "path": path_figure(trace)},
    )


def sweep(
    found: PaperRuns, printed: PrintedTable, *, group: str, axis: str, label: str
) -> DrawnItem:
    """Figures 6 and 7: sparsity and score against one number of the gates."""
    own: dict[float, list[Any]] = {}
    for each in found.runs(group):
        own.setdefault(float(each.at(axis)), []).append(each)
    rows = []
    for value in sorted(own):
        closed = sum("all_closed" in each.record for each in own[value])
        full = [each.record["scores"]["before"]["score"] for each in own[value]]
        rows.append([
            f"{value:g}", Spread(tuple(each.sparsity for each in own[value])),
            Spread(tuple(each.score for each in own[value])), float(np.mean(full)),
            f"{closed} of {len(own[value])}",
        ])  # fmt: skip
    columns = [label, "share of heads removed", "score", "all heads", "runs in which all closed"]
    lines = {
        name: {value: [get(each) for each in own[value]] for value in own}
        for name, get in (("share of heads removed", lambda run: run.sparsity),
                          ("score", lambda run: run.score))
    }  # fmt: skip
    task = found.runs(group)[0].at("task")
    panels = [
        Lines(title=task, lines={name: line}, x=label, y=name, logarithmic=True)
        for name, line in lines.items()
    ]
    return DrawnItem(sheets=[Sheet(title=f"{label} on {task}", columns=columns, rows=rows)],
                 figures={"": lines_figure(panels, 2)})  # fmt: skip


def cost(found: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Parameters, memory, operations and measured time, with all heads and after the cut.

    The paper counts attention modules alone, here the heads of all of them.
    """
    timed = found.runs("cost")[0].record
    dense, *others = timed["timings"]
    removed = next(each for each in others if each["kind"] == "removed")
    left, flops = 1 - removed["sparsity"], timed["share_of_flops"]
    heads = (dense["memory"] - removed["memory"]) / removed["sparsity"]
    rows: list[list[Any]] = [
        ["megabytes, heads alone", heads / 1e6, left * heads / 1e6],
        ["megabytes, model", dense["memory"] / 1e6, removed["memory"] / 1e6],
        ["parameters, model", dense["parameters"], removed["parameters"]],
    ]
    if flops is not None:
        said = "operations as a share of the model's"
        rows += [[f"{said}, heads alone", flops, left * flops], [said, 1.0, 1 - flops * (1 - left)]]
    rows = [[*row, row[2] / row[1], None, None] for row in rows]
    for each in others:
        ratio = [each["ratio"][end] for end in ("median", "low", "high")]
        before = 1000 * dense["seconds"]["median"]
        times = (before, before * ratio[0])  # as the paired rounds say, the one statistic
        rows.append([f"milliseconds, {each['name']}", *times, *ratio])
    columns = ["what", "all heads", "after the cut", "ratio", "low", "high"]
    said = f"{timed['class']}, {timed['batch']} × {timed['reads']}, {timed['threads']} thread"
    rounds = f"{timed['rounds']} paired rounds"
    note = f"{said}; the ratio is the median of {rounds}, with its 95 % interval."
    title = "What half the heads cost"
    return DrawnItem(sheets=[Sheet(title=title, columns=columns, rows=rows, note=note)])


def left_by_layer(found: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """How many heads each layer keeps."""
    own: dict[str, list[Sequence[int]]] = {}
    for each in found.runs("gates", method=GATES, ratio=HALF):
        kept = each.record["heads"]["kept"].split(":")[-1]
        counts = [int(part) for part in (kept.split(",") if "," in kept else kept)]
        own.setdefault(str(each.at("task")), []).append(counts)
    layers = max(len(each) for runs in own.values() for each in runs)
    rows = [
        [task, *(Spread(tuple(float(run[at]) for run in runs), 1) for at in range(layers))]
        for task, runs in own.items()
    ]
    columns = ["task", *(f"layer {at}" for at in range(layers))]
    return DrawnItem(sheets=[Sheet(title="Heads left of half", columns=columns, rows=rows)])


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
