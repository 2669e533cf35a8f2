"""The figures of Why Can You Lay Off Heads?, drawn from finished runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from headcount.heads import Layout, Scores
from headcount.papers.claims_layoff import UNSHARED
from headcount.papers.claims_tools import first_there
from headcount.papers.finished import PaperRuns
from headcount.papers.numbers import PrintedTable
from headcount.papers.panels import Lines, lines_figure
from headcount.papers.seeds import percent
from headcount.papers.sheets import DrawnItem, Sheet, Spread, beside, relative, spread
from headcount.runs.kinds import Train
from headcount.views.transfer import layer_lines, scatter

NORMS = ("none", "l1", "l2")


def kept(found: PaperRuns, group: str, *axes: str, **wanted: Any) -> dict[Any, dict[int, float]]:
    """Axes -> seed -> the share of the full model's score that is left."""
    out: dict[Any, dict[int, float]] = {}
    for each in found.runs(group, **wanted):
        key = tuple(each.at(axis) for axis in axes)
        full = each.record["scores"]["before"]["score"]
        out.setdefault(key[0] if len(axes) == 1 else key, {})[each.seed] = each.score / full
    return out


def curves(found: PaperRuns, printed: PrintedTable, *, groups: Sequence[str]) -> DrawnItem:
    """Figures 1 and 5: what is left of the score, least important heads first, by norm."""
    panels, rows, places = [], [], []
    for group in (name for name in groups if found.is_whole([name])):
        own = kept(found, group, "task", "normalize", "ratio")
        model = "shared layers" if group.startswith("shared") else "BERT"
        for task in dict.fromkeys(task for task, _, _ in own):
            lines: dict[str, dict[float, list[float]]] = {norm: {0.0: [1.0]} for norm in NORMS}
            for (each, norm, ratio), values in own.items():
                if each == task:
                    lines[norm][float(ratio)] = list(values.values())
            panels.append(Lines(title=f"{model}, {task}", lines=lines, level=1.0,
                                x="share of heads removed", y="share of the score"))  # fmt: skip
        for (task, norm, ratio), values in sorted(own.items()):
            rows.append([model, task, norm, percent(ratio), spread(values)])
            places.append({"ratio": ratio} if group == "curve" else {"ratio": -1})
    names, extra = beside(printed, places, "relative score")
    columns = ["model", "task", "norm", "removed", "share of the score", *names]
    sheet = Sheet(title="What is left of the score", columns=columns,
                  rows=[[*row, *more] for row, more in zip(rows, extra, strict=True)])  # fmt: skip
    return DrawnItem(sheets=[sheet], figures={"": lines_figure(panels)})


def large(found: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Figure 5: the largest model that shares its layers, or the one there is."""
    group = first_there(found, "shared-large-curve", "shared-curve")
    return curves(found, printed, groups=(group,))


def words(found: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Figure 2: the masked language model itself, without and with shared layers."""
    lines: dict[str, dict[float, list[float]]] = {}
    rows = []
    models = {"BERT": "words", "shared layers": "shared-words", "the same, unshared": UNSHARED}
    for name, group in models.items():
        own = kept(found, group, "ratio")
        if own:
            lines[name] = {0.0: [1.0]} | {
                float(at): list(each.values()) for at, each in own.items()
            }
        rows += [[name, percent(at), spread(each)] for at, each in sorted(own.items())]
    metric = found.runs("words")[0].metric
    panel = Lines(title="masked words", lines=lines, level=1.0, x="share of heads removed",
                  y=f"share of the {metric}")  # fmt: skip
    sheet = Sheet(
        title="Masked words", columns=["model", "removed", "share of the score"], rows=rows
    )
    return DrawnItem(sheets=[sheet], figures={"": lines_figure([panel])})


def recalls(found: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Figure 3: of a task's needed heads, the share that is left when pruned on masked words."""
    lines, rows, places, notes = {}, [], [], []
    for each in found.runs("drift"):
        task = str(each.at("task"))
        points = each.record.get("recall") or []
        there = {float(row["at"]): [float(row["value"])] for row in points if row["needed"]}
        if there:
            lines[task] = there
        else:
            notes.append(f"On {task} 90 % of the score is there without a single head.")
        for point in points:
            rows.append([task, percent(point["at"]), point["value"], point["chance"]])
            places.append({"kept": point["at"]})
    names, extra = beside(printed, places, "recall")
    columns = ["task", "masked-word score kept", "recall", "chance", *names]
    sheet = Sheet(title="Recall of the heads that a task needs for 90 % of its score",
                  columns=columns,
                  rows=[[*row, *more] for row, more in zip(rows, extra, strict=True)])  # fmt: skip
    panel = Lines(title="recall", lines=lines, x="masked-word score kept", y="recall")
    return DrawnItem(sheets=[sheet], figures={"": lines_figure([panel])}, notes=notes)


def drifts(found: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Figure 4: attention and hidden states move in fine-tuning, layer by layer."""
    figures, rows = {}, []
    for each in found.runs("drift"):
        task, layers = str(each.at("task")), each.record["drift"]["layers"]
        layers = [{k: np.nan if v is None else v for k, v in layer.items()} for layer in layers]
        figures[task] = layer_lines(layers, title=task)
        for at, layer in enumerate(layers):
            rows.append([task, at, layer["mean"], layer["max"], layer["hidden"]])
    columns = [
        "task",
        "layer",
        "attention, mean of heads",
        "attention, largest",
        "hidden states, L2",
    ]
    return DrawnItem(sheets=[Sheet(title="Drift in fine-tuning", columns=columns, rows=rows)],
                 figures=figures)  # fmt: skip


def against_importance(found: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Figure 6: drift against importance, a point for each head."""
    from headcount.changes.correlation import correlate

    figures, rows = {}, []
    for each in found.runs("drift"):
        task = str(each.at("task"))
        layout = Layout.from_json(each.record["layout"])
        drift = _scores(layout, each.record["drift"]["attention"])
        given = {name: _scores(layout, by) for name, by in each.record["importance"].items()}
        found_lines = {name: correlate(drift.values, own.values) for name, own in given.items()}
        figures[task] = scatter(drift, given, found_lines, title=task)
        for name, line in found_lines.items():
            rows.append(
                [task, name, line.pearson, f"[{line.low:.2f}, {line.high:.2f}]", len(layout)]
            )
    columns = ["task", "importance on", "r", "95 %", "heads"]
    sheet = Sheet(title="Drift and importance", columns=columns, rows=rows)
    return DrawnItem(sheets=[sheet], figures=figures)


def _scores(layout: Layout, by_layer: Any) -> Scores:
    values = [one for stack in by_layer.values() for layer in stack for one in layer]
    return Scores(layout, tuple(values))


def frozen(found: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """The lowest layers and the embeddings stand still in fine-tuning."""
    full = found.scores(first_there(found, "frozen-full", "tuned"), "task")
    own = found.scores("frozen", "task")
    rows = [
        [task, spread(full.get(task)), spread(scores),
         Spread(tuple(relative(scores, full.get(task, {})).values()))]
        for task, scores in own.items()
    ]  # fmt: skip
    layers = {each.run.asked(Train).training.freeze or 0 for each in found.runs("frozen")}
    note = f"Frozen: the embeddings and the lowest {', '.join(map(str, sorted(layers)))}."
    columns = ["task", "all layers train", "lowest layers frozen", "share of the score"]
    return DrawnItem(sheets=[Sheet(title="Frozen layers", columns=columns, rows=rows, note=note)])


FIGURES = {
    "figure-1": partial(curves, groups=("curve", "shared-curve")),
    "figure-2": words,
    "figure-3": recalls,
    "figure-4": drifts,
    "figure-5": large,
    "figure-6": against_importance,
    "frozen": frozen,
}
