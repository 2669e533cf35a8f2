"""The figures of Why Can You Lay Off Heads?, drawn from finished runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from headcount.papers.claims_layoff import UNSHARED
from headcount.papers.estimates import percent
from headcount.papers.finished import PaperRuns, by_axes, number_of
from headcount.papers.numbers import PrintedTable
from headcount.papers.panels import Lines, lines_figure
from headcount.papers.sheets import Cell, DrawnItem, Sheet, Spread, relative, spread
from headcount.runs.kinds.train import Train
from headcount.views.transfer import layer_lines, scatter

NORMS = ("none", "l1", "l2")


def kept(finished: PaperRuns, group: str, *axes: str) -> dict[Any, dict[int, float]]:
    """Axes -> seed -> the share of the full model's score that is left."""
    return by_axes(finished.runs(group), axes, lambda run: run.score / run.score_before)


def curves(finished: PaperRuns, printed: PrintedTable, *, groups: Sequence[str]) -> DrawnItem:
    """Figures 1 and 5: what is left of the score, least important heads first, by norm."""
    panels, rows, places = [], [], []
    for group in (name for name in groups if finished.is_whole(name)):
        shares = kept(finished, group, "task", "normalize", "ratio")
        model = "shared layers" if group.startswith("shared") else "BERT"
        for task in dict.fromkeys(task for task, _, _ in shares):
            lines: dict[str, dict[float, list[float]]] = {norm: {0.0: [1.0]} for norm in NORMS}
            for (of, norm, ratio), values in shares.items():
                if of == task:
                    lines[norm][float(ratio)] = list(values.values())
            axes = ("share of heads removed", "share of the score")
            panels.append(Lines(f"{model}, {task}", lines, *axes, level=1.0))
        for (task, norm, ratio), values in sorted(shares.items()):
            rows.append([model, task, norm, percent(ratio), spread(values)])
            places.append({"ratio": ratio if group == "curve" else -1})
    columns = ["model", "task", "norm", "removed", "share of the score"]
    sheet = Sheet("What is left of the score", columns, rows)
    return DrawnItem([sheet.beside(printed, places, "relative score")], {"": lines_figure(panels)})


def large(finished: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Figure 5: the largest model that shares its layers, or the one there is."""
    group = finished.first_group("shared-large-curve", "shared-curve")
    return curves(finished, printed, groups=(group,))


def words(finished: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Figure 2: the masked language model itself, without and with shared layers."""
    lines: dict[str, dict[float, list[float]]] = {}
    rows: list[list[Cell]] = []
    models = {"BERT": "words", "shared layers": "shared-words", "the same, unshared": UNSHARED}
    for name, group in models.items():
        shares = kept(finished, group, "ratio")
        if shares:
            by_ratio = {float(ratio): list(shares[ratio].values()) for ratio in shares}
            lines[name] = {0.0: [1.0]} | by_ratio
        rows += [[name, percent(ratio), spread(shares[ratio])] for ratio in sorted(shares)]
    metric = finished.runs("words")[0].metric
    axes = ("share of heads removed", f"share of the {metric}")
    figure = lines_figure([Lines("masked words", lines, *axes, level=1.0)])
    sheet = Sheet("Masked words", ["model", "removed", "share of the score"], rows)
    return DrawnItem([sheet], {"": figure})


def recalls(finished: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Figure 3: of a task's needed heads, the share that is left when pruned on masked words."""
    lines, rows, places, notes = {}, [], [], []
    for run in finished.runs("drift"):
        line = {row.at: [number_of(row.value)] for row in run.transfer.recall if row.needed}
        if line:
            lines[run.task] = line
        else:
            notes.append(f"On {run.task} 90 % of the score is there without a single head.")
        for row in run.transfer.recall:
            rows.append([run.task, percent(row.at), row.value, row.chance])
            places.append({"kept": row.at})
    columns = ["task", "masked-word score kept", "recall", "chance"]
    sheet = Sheet("Recall of the heads that a task needs for 90 % of its score", columns, rows)
    figure = lines_figure([Lines("recall", lines, "masked-word score kept", "recall")])
    return DrawnItem([sheet.beside(printed, places, "recall")], {"": figure}, notes)


def drifts(finished: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Figure 4: attention and hidden states move in fine-tuning, layer by layer."""
    figures, rows = {}, []
    for run in finished.runs("drift"):
        figures[run.task] = layer_lines(run.transfer.drift.layers, title=run.task)
        for at, layer in enumerate(run.transfer.drift.layers):
            rows.append([run.task, at, layer.mean, layer.max, layer.hidden])
    measures = ("attention, mean of heads", "attention, largest", "hidden states, L2")
    return DrawnItem([Sheet("Drift in fine-tuning", ["task", "layer", *measures], rows)], figures)


def against_importance(finished: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Figure 6: drift against importance, a point for each head."""
    from headcount.changes.correlation import correlate

    figures, rows = {}, []
    for run in finished.runs("drift"):
        drift, importance = run.drift, run.importance
        fits = {name: correlate(drift.values, importance[name].values) for name in importance}
        figures[run.task] = scatter(drift, importance, fits, title=run.task)
        for name, fit in fits.items():
            interval = f"[{fit.low:.2f}, {fit.high:.2f}]"
            rows.append([run.task, name, fit.pearson, interval, len(drift.layout)])
    columns = ["task", "importance on", "r", "95 %", "heads"]
    return DrawnItem([Sheet("Drift and importance", columns, rows)], figures)


def frozen(finished: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """The lowest layers and the embeddings stand still in fine-tuning."""
    full = finished.scores(finished.first_group("frozen-full", "tuned"), "task")
    rows: list[list[Cell]] = []
    for task, scores in finished.scores("frozen", "task").items():
        share = Spread(tuple(relative(scores, full.get(task, {})).values()))
        rows.append([task, spread(full.get(task)), spread(scores), share])
    layers = {run.run.options_as(Train).training.freeze or 0 for run in finished.runs("frozen")}
    note = f"Frozen: the embeddings and the lowest {', '.join(map(str, sorted(layers)))}."
    columns = ["task", "all layers train", "lowest layers frozen", "share of the score"]
    return DrawnItem([Sheet("Frozen layers", columns, rows, note)])


FIGURES = {
    "figure-1": partial(curves, groups=("curve", "shared-curve")),
    "figure-2": words,
    "figure-3": recalls,
    "figure-4": drifts,
    "figure-5": large,
    "figure-6": against_importance,
    "frozen": frozen,
}
