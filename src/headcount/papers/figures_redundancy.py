"""The figures of On Attention Redundancy (NAACL 2021), drawn from finished runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from headcount.heads import Layout, Mask, Scores
from headcount.likeness.agreement import correlation, pairs
from headcount.likeness.distances import SENTENCE_BASED, TOKEN_BASED
from headcount.likeness.layers import layer_clusters, layer_gap, layers_of
from headcount.likeness.result import Redundancy
from headcount.papers.claims_tools import first_there
from headcount.papers.finished import PaperRuns
from headcount.papers.numbers import PrintedTable
from headcount.papers.panels import Lines, lines_figure, squares_figure, table_figure
from headcount.papers.seeds import percent
from headcount.papers.sheets import DrawnItem, Sheet, Spread, beside, relative, spread
from headcount.views.redundancy import heat_maps, in_full
from headcount.views.studies import chance_figure

SEVEN = (*TOKEN_BASED, *SENTENCE_BASED)
RANDOM = "random tokens"
STAND_INS = {
    "cola": ("cola", "pocket-acceptability"),
    "sst2": ("sst2", "pocket-sentiment", "cola"),
    "mrpc": ("mrpc", "pocket-paraphrase"),
    "qqp": ("qqp", "pocket-paraphrase", "mrpc"),
    "stsb": ("stsb", "pocket-similarity"),
    "mnli": ("mnli", "pocket-entailment", "rte"),
    "qnli": ("qnli", "pocket-entailment", "rte"),
    "rte": ("rte", "pocket-entailment"),
}
"""The paper's task -> what stands for it, the first that a scale has."""


def matrices(found: PaperRuns, phase: str) -> dict[str, Redundancy]:
    """Inputs -> redundancy of the pre-trained or the fine-tuned model."""
    group = "near" if phase == "pre-trained" else "near-tuned"
    read = {str(each.at("task")): each.redundancy() for each in found.runs(group)}
    if phase == "pre-trained":
        for each in found.runs("near-random"):
            read[RANDOM] = each.redundancy()
    return read


def stand_in(task: str, there: Iterable[str]) -> str | None:
    """The task of this scale that stands for the paper's."""
    return next((name for name in STAND_INS[task] if name in set(there)), None)


def maps(found: PaperRuns, printed: PrintedTable, *, task: str, phases: Sequence[str],
         distances: Sequence[str] = SEVEN) -> DrawnItem:  # fmt: skip
    """Figures 1, 2, 4 and 10 to 18: heat maps of the heads' distances."""
    rows: list[list[Any]] = []
    figures, notes = {}, []
    for phase in phases:
        there = matrices(found, phase)
        name = RANDOM if task == RANDOM else stand_in(task, there)
        if name is None or name not in there:
            notes.append(f"No {phase} model was measured on {task}.")
            continue
        if name != task:
            notes.append(f"{name} stands for the paper's {task}.")
        value = there[name]
        figures[phase] = heat_maps(value, [each for each in distances if each in value.distances])
        for each in distances:
            measured = value[each].values
            off = pairs(measured)
            rows.append([phase, name, in_full(each), float(off.mean()), float(off.min()),
                         float(off.max()), value.count])  # fmt: skip
    columns = ["model", "inputs", "distance", "mean", "smallest", "largest", "inputs read"]
    sheet = Sheet(title="Distances between heads", columns=columns, rows=rows)
    return DrawnItem(sheets=[sheet], figures=figures, notes=list(dict.fromkeys(notes)))


def agreement(value: Redundancy, names: Sequence[str]) -> np.ndarray:
    """Pearson's r between the matrices of every two distances."""
    return np.asarray(np.corrcoef([pairs(value[name].values) for name in names]))


def distances_agree(found: PaperRuns, printed: PrintedTable, *, task: str | None) -> DrawnItem:
    """Figures 3 (one task) and 19 (all inputs, both phases): do the distances agree?"""
    squares, rows = {}, []
    phases = ("pre-trained",) if task else ("pre-trained", "fine-tuned")
    for phase in phases:
        there = matrices(found, phase)
        chosen = [stand_in(task, there)] if task else list(there)
        for name in (each for each in chosen if each is not None):
            r = agreement(there[name], SEVEN)
            squares[f"{name}, {phase}"] = (SEVEN, r)
            token, sentence = slice(0, 4), slice(4, 7)
            between = r[token, sentence]
            rows.append([phase, name, _least(r[token, token]), _least(r[sentence, sentence]),
                         float(between.mean())])  # fmt: skip
    columns = ["model", "inputs", "smallest r, token-based", "smallest r, sentence-based",
               "mean r between the two kinds"]  # fmt: skip
    sheet = Sheet(title="Agreement of distances", columns=columns, rows=rows)
    return DrawnItem(sheets=[sheet], figures={"": squares_figure(squares)} if squares else {})


def _least(r: np.ndarray) -> float:
    return float(r[np.triu_indices(len(r), 1)].min())


def phases_agree(found: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Figure 5: the pre-trained against the fine-tuned model, by task and distance."""
    before, after = matrices(found, "pre-trained"), matrices(found, "fine-tuned")
    tasks = [name for name in after if name in before]
    r = np.array([[_r(before[task], after[task], each) for each in SEVEN] for task in tasks])
    gap = np.array([[_gap(before[task], after[task], each) for each in SEVEN] for task in tasks])
    rows = [[task, *map(float, r[at]), float(gap[at].mean())] for at, task in enumerate(tasks)]
    columns = ["task", *(f"r, {each}" for each in SEVEN), "mean absolute difference"]
    names, extra = beside(printed, [{"task": task} for task in tasks], "mean absolute difference")
    sheet = Sheet(
        title="Pre-trained and fine-tuned", columns=[*columns, *names],
        rows=[[*row, *more] for row, more in zip(rows, extra, strict=True)],
    )  # fmt: skip
    figure = table_figure("Pre-trained with fine-tuned", tasks, SEVEN, r, label="r")
    return DrawnItem(sheets=[sheet], figures={"": figure})


def _r(one: Redundancy, other: Redundancy, name: str) -> float:
    return correlation(pairs(one[name].values), pairs(other[name].values))


def _gap(one: Redundancy, other: Redundancy, name: str) -> float:
    return float(np.abs(pairs(one[name].values) - pairs(other[name].values)).mean())


def tasks_agree(found: PaperRuns, printed: PrintedTable, *, phase: str) -> DrawnItem:
    """Figures 6 (pre-trained) and 20 (fine-tuned): task against task, by distance."""
    there = matrices(found, phase)
    inputs = list(there)
    squares, rows = {}, []
    for name in SEVEN:
        r = np.asarray(np.corrcoef([pairs(there[each][name].values) for each in inputs]))
        squares[in_full(name)] = (inputs, r)
        least = min(combinations(range(len(inputs)), 2), key=lambda pair: r[pair])
        rows.append([in_full(name), float(r[least]), f"{inputs[least[0]]} – {inputs[least[1]]}",
                     float(r[np.triu_indices(len(r), 1)].mean())])  # fmt: skip
    columns = ["distance", "smallest r", "between", "mean r"]
    sheet = Sheet(title=f"Agreement of inputs, {phase}", columns=columns, rows=rows)
    return DrawnItem(sheets=[sheet], figures={"": squares_figure(squares)})


def groups_of_layers(found: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Section 5.1: near layers are near, and layers make groups."""
    there = matrices(found, "pre-trained")
    layers = layers_of(next(iter(there.values())).layout, "encoder")
    rows, lines = [], {}
    for name in SEVEN:
        mean = np.mean([value[name].values for value in there.values()], axis=0)
        gap, groups = layer_gap(mean, layers), layer_clusters(mean, layers)
        lines[name] = {float(at): [each] for at, each in zip(gap.gaps, gap.means, strict=True)}
        rows.append([in_full(name), gap.spearman, gap.p_value, "".join(map(str, groups.labels)),
                     "yes" if groups.contiguous else "no", groups.adjusted_rand])  # fmt: skip
    columns = ["distance", "Spearman with the layer gap", "p", "groups of layers", "contiguous",
               "adjusted Rand with the best cut"]  # fmt: skip
    panel = Lines(title="Layers apart", lines=lines, x="layer gap", y="mean distance")
    return DrawnItem(
        sheets=[Sheet(title="Where heads are alike", columns=columns, rows=rows)],
        figures={"": lines_figure([panel])},
    )


def zero_shot(found: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Figure 7: pruned by clustering, then fine-tuned."""
    whole = first_there(found, "zero-shot-full", "tuned")
    full = found.scores(whole, "task")
    own = found.scores("zero-shot", "task", "ratio")
    random = found.scores("random", "task", "ratio")
    ratios = sorted({ratio for _, ratio in own})
    panels, rows, places = [], [], []
    for task in full:
        lines = {
            name: {0.0: list(full[task].values())}
            | {r: list(v.values()) for (t, r), v in there.items() if t == task}
            for name, there in (("cluster", own), ("random", random))
        }
        metric = next(iter(found.runs(whole, task=task))).metric
        panels.append(Lines(title=task, lines=lines, x="share of heads removed", y=metric,
                            level=float(np.mean(list(full[task].values())))))  # fmt: skip
        for ratio in ratios:
            kept = relative(own.get((task, ratio), {}), full[task])
            rows.append([task, percent(ratio), spread(own.get((task, ratio))),
                         Spread(tuple(100 * (1 - each) for each in kept.values()), 1)])  # fmt: skip
            places.append({"ratio": ratio})
    names, extra = beside(printed, places, "drop")
    columns = ["task", "removed", "score", "drop, %", *names]
    joined = [[*row, *more] for row, more in zip(rows, extra, strict=True)]
    sheet = Sheet(title="Zero-shot pruning, fine-tuned", columns=columns, rows=joined)
    return DrawnItem(sheets=[sheet], figures={"": lines_figure(panels)})


def chances(found: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Figure 8: how often each head goes, over ten clusterings."""
    by_ratio: dict[float, list[np.ndarray]] = {}
    layout: Layout | None = None
    for each in found.runs("chance"):
        mask = Mask.from_json(each.record["mask"])
        layout = mask.layout
        gone = np.array([head not in mask for head in layout], dtype=float)
        by_ratio.setdefault(float(each.at("ratio")), []).append(gone)
    assert layout is not None
    chance = {ratio: np.mean(each, axis=0) for ratio, each in sorted(by_ratio.items())}
    rows = []
    for ratio, values in chance.items():
        layers = np.array([head.layer for head in layout])
        thirds = np.array_split(np.unique(layers), 3)
        means = [float(values[np.isin(layers, third)].mean()) for third in thirds]
        never = int((values[np.isin(layers, thirds[1])] == 0).sum())
        rows.append([percent(ratio), *means, never, len(by_ratio[ratio])])
    columns = ["removed", "lower third", "middle third", "upper third",
               "middle heads never pruned", "clusterings"]  # fmt: skip
    scores = {ratio: Scores(layout, tuple(values.tolist())) for ratio, values in chance.items()}
    figure = chance_figure(scores, title="How often each head goes, by clustering")
    return DrawnItem(sheets=[Sheet(title="Which heads go", columns=columns, rows=rows)],
                 figures={"": figure})  # fmt: skip


DROPOUT = {"attention": "attention_dropout", "hidden": "hidden_dropout",
           "both": "attention_dropout,hidden_dropout"}  # fmt: skip


def likeness(found: PaperRuns, kind: str, distance: str) -> dict[float, dict[int, float]]:
    """Dropout -> seed -> the mean distance between two heads, for one kind of dropout."""
    out: dict[float, dict[int, float]] = {}
    for each in found.runs(f"alike-{kind}"):
        off = pairs(each.redundancy()[distance].values)
        out.setdefault(float(each.at(DROPOUT[kind])), {})[int(each.at("seed"))] = float(off.mean())
    return out


def dropouts(found: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Figure 9: the mean distance between heads against the dropout they were trained with."""
    panels, rows = [], []
    for distance in ("js", "dcor"):
        own = {kind: likeness(found, kind, distance) for kind in DROPOUT}
        lines = {k: {at: list(v.values()) for at, v in each.items()} for k, each in own.items()}
        panels.append(Lines(title=in_full(distance), lines=lines, x="dropout", y="mean distance"))
        for kind, each in own.items():
            rows += [[in_full(distance), kind, at, spread(each[at], 4)] for at in sorted(each)]
    columns = ["distance", "dropout of", "dropout", "mean distance between heads"]
    return DrawnItem(sheets=[Sheet(title="Dropout and likeness", columns=columns, rows=rows)],
                 figures={"": lines_figure(panels, 2)})  # fmt: skip


FIGURES = {
    "figure-1": partial(maps, task="cola", phases=("pre-trained",), distances=("js",)),
    "figure-2": partial(maps, task="cola", phases=("pre-trained",)),
    "figure-3": partial(distances_agree, task="cola"),
    "figure-4": partial(maps, task="cola", phases=("fine-tuned",)),
    "figure-5": phases_agree,
    "figure-6": partial(tasks_agree, phase="pre-trained"),
    "figure-7": zero_shot,
    "figure-8": chances,
    "figure-9": dropouts,
    **{
        f"figure-{number}": partial(maps, task=task, phases=("pre-trained", "fine-tuned"))
        for number, task in enumerate(STAND_INS, 10)
    },
    "figure-18": partial(maps, task=RANDOM, phases=("pre-trained",)),
    "figure-19": partial(distances_agree, task=None),
    "figure-20": partial(tasks_agree, phase="fine-tuned"),
    "layers": groups_of_layers,
}
