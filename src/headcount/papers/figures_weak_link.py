"""The tables and figures of On the weak link between importance and prunability (EMNLP 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from headcount.papers.claims_weak_link import pruning_of
from headcount.papers.estimates import percent
from headcount.papers.finished import FinishedRun, PaperRuns
from headcount.papers.numbers import PrintedTable
from headcount.papers.panels import Lines, lines_figure
from headcount.papers.sheets import Cell, DrawnItem, Sheet, Spread, relative, spread

STACKS = ("encoder", "cross", "decoder")
Scores = dict[str, dict[Any, dict[int, float]]]
"""Task -> value of an axis -> seed -> score."""


def share(run: FinishedRun) -> float:
    """The share of heads that went, rounded to the per cent."""
    return round(run.sparsity, 2)


def by_task(finished: PaperRuns, group: str, axis: str | None) -> Scores:
    """Task -> value of an axis (or the share that went) -> seed -> score."""
    scores: Scores = {}
    for run in finished.runs(group):
        at = share(run) if axis is None else run.at(axis)
        scores.setdefault(run.task, {}).setdefault(at, {})[run.seed] = run.score
    return scores


def _by_ratio(
    title: str, full: Mapping[str, Any], scores: Scores, printed: PrintedTable, digits: int = 3
) -> DrawnItem:
    """A row for every share of heads that went, a column for each task, then the paper's."""
    ratios = sorted({ratio for of_task in scores.values() for ratio in of_task})
    every = {task: {0.0: full.get(task)} | scores[task] for task in scores}
    rows = [
        [percent(ratio), *(spread(every[task].get(ratio), digits) for task in every)]
        for ratio in (0.0, *ratios)
    ]
    sheet = Sheet(title, ["removed", *every], rows)
    places = [{"ratio": ratio} for ratio in (0.0, *ratios)]
    return DrawnItem([sheet.beside(printed, places, _metric(printed))])


def _metric(printed: PrintedTable) -> str | None:
    """The paper's scores, without the differences that it prints beside them."""
    metrics = (number.metric for number in printed.numbers)
    return next((metric for metric in metrics if metric != "difference"), None)


def translator(finished: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Table 1: a translator pruned at random."""
    full: Scores = {}
    scores: Scores = {}
    for pair in ("", "-de"):  # a second pair of languages, where there is one
        for table, group in ((full, "mt-full"), (scores, "mt-random"), (scores, "mt-left")):
            for task, by_share in by_task(finished, f"{group}{pair}", None).items():
                table.setdefault(f"{task}{pair}", {}).update(by_share)
    whole = {task: by_share.get(0.0) for task, by_share in full.items()}
    return _by_ratio("BLEU after the cut and training", whole, scores, printed, 2)


def patterns(finished: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Table 2: the layers thought important kept, or the others."""
    scores: dict[tuple[float, str, str], dict[int, float]] = {}
    for run in finished.runs("mt-patterns"):
        keep = str(run.at("keep"))
        counts = [int(digit) for digit in keep.partition(":")[2].partition(" ")[0]]
        half = len(counts) // 2
        keeps = "important" if sum(counts[:half]) > sum(counts[-half:]) else "unimportant"
        scores.setdefault((share(run), keeps, keep), {})[run.seed] = run.score
    kept = {"important": "important", "unimportant": "others"}
    order = sorted(scores, key=lambda key: key[:2])
    rows: list[list[Cell]] = [
        [percent(ratio), kept[keeps], keep, spread(scores[ratio, keeps, keep], 2)]
        for ratio, keeps, keep in order
    ]
    places = [{"ratio": ratio, "keeps": keeps} for ratio, keeps, _ in order]
    columns = ["removed", "kept", "heads by layer", "BLEU"]
    sheet = Sheet("Layers that count, kept or cut", columns, rows)
    return DrawnItem([sheet.beside(printed, places, "bleu")])


def components(finished: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Table 3: each component starved in turn."""
    scores: dict[tuple[float, int, str], dict[int, float]] = {}
    for run in finished.runs("mt-components"):
        keep = str(run.at("keep"))
        fewest = int(np.argmin([int(count) for count in keep.split(",")]))
        scores.setdefault((share(run), fewest, keep), {})[run.seed] = run.score
    paper = sorted({number.at["ratio"] for number in printed.numbers if number.at["ratio"]})
    rows, places = [], []
    for ratio, fewest, keep in sorted(scores, key=lambda key: key[:2]):
        by_seed = scores[ratio, fewest, keep]
        rows.append([percent(ratio), STACKS[fewest], keep, spread(by_seed, 2)])
        nearest = min(paper, key=lambda printed, ratio=ratio: abs(printed - ratio))
        places.append({"ratio": nearest, "fewest": STACKS[fewest]})
    columns = ["removed", "fewest heads in", "heads kept", "BLEU"]
    note = "The paper's numbers are those of its nearest share of heads."
    sheet = Sheet("Components starved in turn", columns, rows, note)
    return DrawnItem([sheet.beside(printed, places, "bleu")])


def at_random(finished: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Table 4: BERT pruned at random, then fine-tuned."""
    full, scores = finished.scores("tuned", "task"), by_task(finished, "random", "ratio")
    return _by_ratio("Score after the cut and fine-tuning", full, scores, printed)


def layers(finished: PaperRuns, printed: PrintedTable, *, half: bool) -> DrawnItem:
    """Tables 5 (some layers emptied) and 6 (half of them)."""
    full, scores = finished.scores("tuned", "task"), by_task(finished, "layers", "empty")
    *_, counts = finished.runs("layers")[0].mask.counts().values()
    total = len(counts)
    names = dict.fromkeys(name for of_task in scores.values() for name in of_task)
    chosen = [name for name in names if not half or _emptied(name, total) == total / 2]
    rows: list[list[Cell]] = [["all heads", *(spread(full.get(task)) for task in scores)]]
    rows += [[name, *(spread(scores[task].get(name)) for task in scores)] for name in chosen]
    paper = {
        _shape(str(number.at["layers"]), 12): number.at["layers"]
        for number in printed.numbers
        if "layers" in number.at
    }
    places = [{"method": "all-heads"}]
    places += [{"layers": paper.get(_shape(name, total), name)} for name in chosen]
    note = "The paper's numbers are those of the same share of its twelve layers."
    sheet = Sheet(f"Layers emptied, of {total}", ["emptied", *scores], rows, note)
    return DrawnItem([sheet.beside(printed, places, _metric(printed))])


def _emptied(name: str, total: int) -> float:
    if name in ("even", "odd"):
        return total / 2
    return sum(int(part.partition(":")[2]) for part in name.split("+"))


def _shape(name: str, total: int) -> tuple[str, ...]:
    """What is emptied, in shares of all layers."""
    parts = (part.partition(":") for part in name.split("+"))
    return tuple(
        f"{where}{int(count) / total:.3f}" if count else where for where, _, count in parts
    )


def random_lines(finished: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Figure 1: what is left of the score against the share of heads removed at random."""
    panels: list[Lines] = []
    rows: list[list[Cell]] = []
    models = {"translator": ("mt-random", "mt-full"), "BERT": ("random", "tuned")}
    for title, (pruned, whole) in models.items():
        full, lines = finished.scores(whole, "task"), {}
        for task, by_share in by_task(finished, pruned, None).items():
            lines[task] = {0.0: [100.0]}
            for at, scores in by_share.items():
                lines[task][at] = [100 * part for part in relative(scores, full[task]).values()]
            for at, values in sorted(lines[task].items()):
                rows.append([title, task, percent(at), Spread(tuple(values), 1)])
        axes = ("share of heads removed", "of all heads, %")
        panels.append(Lines(title, lines, *axes, level=100.0))
    columns = ["model", "task", "removed", "share of the score"]
    sheet = Sheet("Of the score with all heads, %", columns, rows)
    return DrawnItem([sheet], {"": lines_figure(panels, 2)})


def moved(finished: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Figure 2: how much each head's weights move in fine-tuning, after several prunings."""
    from headcount.views.transfer import head_map

    figures, rows = {}, []
    for run in finished.runs("moved"):
        change, name = run.transfer.weight_change, pruning_of(run)
        name += " emptied" if name.startswith("layers") else ""
        means = change.layers["encoder"]
        cells = ("–" if value is None else f"{value:.4f}" for value in means)
        rows.append([name, run.seed, *cells, change.spread["encoder"]])
        if run.seed == 0 and name not in figures:
            moves = run.weight_change_of_heads
            figures[name] = head_map(moves, title=name, label="mean absolute change")
    count = max((len(row) - 3 for row in rows), default=0)
    columns = ["cut", "seed", *(f"layer {at}" for at in range(count)), "spread"]
    note = "Spread: the largest difference of two layers' means, as a share of the mean."
    return DrawnItem([Sheet("Mean change of the weights", columns, rows, note)], figures)


def grid(finished: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Batch size × learning rate: the best on some rows, scored on others."""
    runs = finished.runs("grid-chosen")
    scores = {(run.at("batch_size"), run.at("learning_rate")): run.score for run in runs}
    sizes, rates = (sorted(set(axis)) for axis in zip(*scores, strict=True))
    rows: list[list[Cell]] = [
        [f"batches of {size}", *(scores.get((size, rate)) for rate in rates)] for size in sizes
    ]
    size, rate = max(scores, key=lambda key: scores[key])
    note = f"Best on these rows: batches of {size}, rate {rate:g}."
    for best in finished.runs("grid-best")[:1]:
        note += f" On the other half of the rows it scores {best.score:.3f}."
    columns = ["", *(f"{rate:g}" for rate in rates)]
    return DrawnItem([Sheet("Score on the rows that choose", columns, rows, note)])


FIGURES = {
    "table-1": translator,
    "table-2": patterns,
    "table-3": components,
    "table-4": at_random,
    "table-5": partial(layers, half=False),
    "table-6": partial(layers, half=True),
    "figure-1": random_lines,
    "figure-2": moved,
    "grid": grid,
}
