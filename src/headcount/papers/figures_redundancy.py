"""The figures of On Attention Redundancy (NAACL 2021), drawn from finished runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import combinations

import numpy as np

from headcount.heads import Scores
from headcount.likeness.agreement import correlation, pairs
from headcount.likeness.layers import layer_clusters, layer_gap, layers_of
from headcount.likeness.result import Redundancy
from headcount.papers.claims_clusters import FULL
from headcount.papers.claims_dropout import GROUPS, dropout_line
from headcount.papers.estimates import percent
from headcount.papers.finished import PaperRuns
from headcount.papers.head_matrices import AFTER, BEFORE, RANDOM, SEVEN, correlations
from headcount.papers.numbers import PrintedTable
from headcount.papers.panels import Lines, lines_figure, squares_figure, table_figure
from headcount.papers.sheets import Cell, DrawnItem, Sheet, Spread, relative, spread
from headcount.views.redundancy import heat_maps, in_full
from headcount.views.studies import frequency_figure

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


def matrices(finished: PaperRuns, phase: str) -> dict[str, Redundancy]:
    """Inputs -> redundancy of the pre-trained or the fine-tuned model."""
    group = "near" if phase == BEFORE else "near-tuned"
    measured = {run.task: run.redundancy() for run in finished.runs(group)}
    for run in finished.runs("near-random") if phase == BEFORE else ():
        measured[RANDOM] = run.redundancy()
    return measured


def stand_in(task: str, measured: Iterable[str]) -> str | None:
    """The task of this scale that stands for the paper's."""
    return next((name for name in STAND_INS.get(task, (task,)) if name in measured), None)


def maps(
    finished: PaperRuns,
    printed: PrintedTable,
    *,
    task: str,
    phases: Sequence[str] = (BEFORE,),
    distances: Sequence[str] = SEVEN,
) -> DrawnItem:
    """Figures 1, 2, 4 and 10 to 18: heat maps of the heads' distances."""
    rows: list[list[Cell]] = []
    figures, notes = {}, []
    for phase in phases:
        measured = matrices(finished, phase)
        inputs = stand_in(task, measured)
        if inputs is None:
            notes.append(f"No {phase} model was measured on {task}.")
            continue
        if inputs != task:
            notes.append(f"{inputs} stands for the paper's {task}.")
        value = measured[inputs]
        figures[phase] = heat_maps(value, [name for name in distances if name in value.distances])
        for name in distances:
            off = pairs(value[name].values)
            summary = [float(of(off)) for of in (np.mean, np.min, np.max)]
            rows.append([phase, inputs, in_full(name), *summary, value.count])
    columns = ["model", "inputs", "distance", "mean", "smallest", "largest", "inputs read"]
    sheet = Sheet("Distances between heads", columns, rows)
    return DrawnItem([sheet], figures, list(dict.fromkeys(notes)))


def distances_agree(finished: PaperRuns, printed: PrintedTable, *, task: str | None) -> DrawnItem:
    """Figures 3 (one task) and 19 (all inputs, both phases): do the distances agree?"""
    squares, rows = {}, []
    for phase in (BEFORE,) if task else (BEFORE, AFTER):
        measured = matrices(finished, phase)
        for name in [stand_in(task, measured)] if task else list(measured):
            if name is None:
                continue
            r = correlations(measured[name][distance].values for distance in SEVEN)
            squares[f"{name}, {phase}"] = (SEVEN, r)
            token, sentence = slice(0, 4), slice(4, 7)
            least = (float(pairs(r[kind, kind]).min()) for kind in (token, sentence))
            rows.append([phase, name, *least, float(r[token, sentence].mean())])
    columns = [
        "model",
        "inputs",
        "smallest r, token-based",
        "smallest r, sentence-based",
        "mean r between the two kinds",
    ]
    sheet = Sheet("Agreement of distances", columns, rows)
    return DrawnItem([sheet], {"": squares_figure(squares)} if squares else {})


def phases_agree(finished: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Figure 5: the pre-trained against the fine-tuned model, by task and distance."""
    before, after = matrices(finished, BEFORE), matrices(finished, AFTER)
    tasks = [name for name in after if name in before]

    def compared(compare: Callable[[np.ndarray, np.ndarray], float]) -> np.ndarray:
        """(task, distance)"""
        return np.array(
            [
                [
                    compare(*(pairs(model[task][name].values) for model in (before, after)))
                    for name in SEVEN
                ]
                for task in tasks
            ]
        )

    r, gap = compared(correlation), compared(lambda a, b: float(np.abs(a - b).mean()))
    rows = [[task, *map(float, r[at]), float(gap[at].mean())] for at, task in enumerate(tasks)]
    columns = ["task", *(f"r, {name}" for name in SEVEN), "mean absolute difference"]
    sheet = Sheet("Pre-trained and fine-tuned", columns, rows)
    places = [{"task": task} for task in tasks]
    figure = table_figure("Pre-trained with fine-tuned", tasks, SEVEN, r, label="r")
    return DrawnItem([sheet.beside(printed, places, "mean absolute difference")], {"": figure})


def tasks_agree(finished: PaperRuns, printed: PrintedTable, *, phase: str) -> DrawnItem:
    """Figures 6 (pre-trained) and 20 (fine-tuned): task against task, by distance."""
    measured = matrices(finished, phase)
    inputs = list(measured)
    squares, rows = {}, []
    for name in SEVEN:
        r = correlations(measured[task][name].values for task in inputs)
        squares[in_full(name)] = (inputs, r)
        a, b = min(combinations(range(len(inputs)), 2), key=lambda pair: r[pair])
        two = f"{inputs[a]} – {inputs[b]}"
        rows.append([in_full(name), float(r[a, b]), two, float(pairs(r).mean())])
    columns = ["distance", "smallest r", "between", "mean r"]
    sheet = Sheet(f"Agreement of inputs, {phase}", columns, rows)
    return DrawnItem([sheet], {"": squares_figure(squares)})


def groups_of_layers(finished: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Section 5.1: near layers are near, and layers make groups."""
    measured = list(matrices(finished, BEFORE).values())
    layers = layers_of(measured[0].layout, "encoder")
    rows, lines = [], {}
    for name in SEVEN:
        mean = np.mean([value[name].values for value in measured], axis=0)
        gap, groups = layer_gap(mean, layers), layer_clusters(mean, layers)
        lines[name] = {float(at): [mean] for at, mean in zip(gap.gaps, gap.means, strict=True)}
        labels = "".join(map(str, groups.labels))
        contiguous = "yes" if groups.contiguous else "no"
        clusters = [labels, contiguous, groups.adjusted_rand]
        rows.append([in_full(name), gap.spearman, gap.p_value, *clusters])
    columns = [
        "distance",
        "Spearman with the layer gap",
        "p",
        "groups of layers",
        "contiguous",
        "adjusted Rand with the best cut",
    ]
    figure = lines_figure([Lines("Layers apart", lines, "layer gap", "mean distance")])
    return DrawnItem([Sheet("Where heads are alike", columns, rows)], {"": figure})


def zero_shot(finished: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Figure 7: pruned by clustering, then fine-tuned."""
    group = finished.first_group(*FULL)
    full = finished.scores(group, "task")
    cluster, random = (finished.scores(name, "task", "ratio") for name in ("zero-shot", "random"))
    panels, rows, places = [], [], []
    for task, whole in full.items():
        lines = {
            name: {0.0: list(whole.values())}
            | {ratio: list(values.values()) for (of, ratio), values in scores.items() if of == task}
            for name, scores in (("cluster", cluster), ("random", random))
        }
        metric, level = finished.runs(group, task=task)[0].metric, float(np.mean([*whole.values()]))
        panels.append(Lines(task, lines, "share of heads removed", metric, level=level))
        for ratio in sorted({ratio for _, ratio in cluster}):
            scores = cluster.get((task, ratio), {})
            drops = tuple(100 * (1 - share) for share in relative(scores, whole).values())
            rows.append([task, percent(ratio), spread(scores), Spread(drops, 1)])
            places.append({"ratio": ratio})
    sheet = Sheet("Zero-shot pruning, fine-tuned", ["task", "removed", "score", "drop, %"], rows)
    return DrawnItem([sheet.beside(printed, places, "drop")], {"": lines_figure(panels)})


def chances(finished: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Figure 8: how often each head goes, over ten clusterings."""
    gone: dict[float, list[list[bool]]] = {}
    for run in finished.runs("chance"):
        gone.setdefault(run.ratio, []).append([head not in run.mask for head in run.mask.layout])
    layout = finished.runs("chance")[0].mask.layout
    layers = np.array([head.layer for head in layout])
    thirds = [np.isin(layers, third) for third in np.array_split(np.unique(layers), 3)]
    rows: list[list[Cell]] = []
    scores = {}
    for ratio in sorted(gone):
        chance = np.mean(gone[ratio], axis=0)
        scores[ratio] = Scores(layout, tuple(chance.tolist()))
        means = [float(chance[third].mean()) for third in thirds]
        never = int((chance[thirds[1]] == 0).sum())
        rows.append([percent(ratio), *means, never, len(gone[ratio])])
    columns = [
        "removed",
        "lower third",
        "middle third",
        "upper third",
        "middle heads never pruned",
        "clusterings",
    ]
    figure = frequency_figure(scores, title="How often each head goes, by clustering")
    return DrawnItem([Sheet("Which heads go", columns, rows)], {"": figure})


def dropouts(finished: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Figure 9: the mean distance between heads against the dropout they were trained with."""
    panels, rows = [], []
    for distance in ("js", "dcor"):
        lines = {}
        for kind in ("attention", "hidden", "both"):
            line = dropout_line(finished, GROUPS[kind], distance)
            ratios = sorted(next(iter(line.values())))
            lines[kind] = {ratio: [line[seed][ratio] for seed in line] for ratio in ratios}
            for ratio, values in lines[kind].items():
                rows.append([in_full(distance), kind, ratio, Spread(tuple(values), 4)])
        panels.append(Lines(in_full(distance), lines, "dropout", "mean distance"))
    columns = ["distance", "dropout of", "dropout", "mean distance between heads"]
    sheet = Sheet("Dropout and likeness", columns, rows)
    return DrawnItem([sheet], {"": lines_figure(panels, 2)})


FIGURES = {
    "figure-1": partial(maps, task="cola", distances=("js",)),
    "figure-2": partial(maps, task="cola"),
    "figure-3": partial(distances_agree, task="cola"),
    "figure-4": partial(maps, task="cola", phases=(AFTER,)),
    "figure-5": phases_agree,
    "figure-6": partial(tasks_agree, phase=BEFORE),
    "figure-7": zero_shot,
    "figure-8": chances,
    "figure-9": dropouts,
    **{
        f"figure-{number}": partial(maps, task=task, phases=(BEFORE, AFTER))
        for number, task in enumerate(STAND_INS, 10)
    },
    "figure-18": partial(maps, task=RANDOM),
    "figure-19": partial(distances_agree, task=None),
    "figure-20": partial(tasks_agree, phase=AFTER),
    "layers": groups_of_layers,
}
