"""The tables and figures of On the weak link between importance and prunability (EMNLP 2020)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from headcount.papers.finished import FinishedRun, PaperRuns
from headcount.papers.numbers import PrintedTable
from headcount.papers.panels import Lines, lines_figure
from headcount.papers.seeds import percent
from headcount.papers.sheets import DrawnItem, Sheet, Spread, beside, relative, spread
from headcount.pruning.layers import Layers
from headcount.runs.asked import Prune
from headcount.runs.run import Run

ALL = "all heads"
STACKS = ("encoder", "cross", "decoder")


def share(finished: FinishedRun) -> float:
    """The share of heads that went, rounded to the per cent."""
    return round(finished.sparsity, 2)


def by_task(
    found: PaperRuns, group: str, axis: str | None
) -> dict[str, dict[Any, dict[int, float]]]:
    """Task -> value of an axis (or the share that went) -> seed -> score."""
    out: dict[str, dict[Any, dict[int, float]]] = {}
    for each in found.runs(group):
        at = share(each) if axis is None else each.at(axis)
        out.setdefault(str(each.at("task")), {}).setdefault(at, {})[each.seed] = each.score
    return out


def _sheet(
    title: str,
    first: str,
    labels: Sequence[str],
    own: Mapping[str, Sequence[Any]],
    printed: PrintedTable,
    places: Sequence[Mapping[str, Any]],
    note: str = "",
) -> Sheet:
    """Rows by label: a column for each task, then the paper's."""
    names, extra = beside(printed, places, _metric(printed))
    rows = [
        [label, *(cells[at] for cells in own.values()), *extra[at]]
        for at, label in enumerate(labels)
    ]
    return Sheet(title=title, columns=[first, *own, *names], rows=rows, note=note)


def _metric(printed: PrintedTable) -> str | None:
    """The paper's scores, without the differences that it prints beside them."""
    there = [each.metric for each in printed.numbers if each.metric != "difference"]
    return there[0] if there else None


def translator(found: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Table 1: a translator cut at random."""
    full: dict[str, dict[float, dict[int, float]]] = {}
    own: dict[str, dict[float, dict[int, float]]] = {}
    for pair in ("", "-de"):  # a second pair of languages, where there is one
        for there, group in ((full, "mt-full"), (own, "mt-random"), (own, "mt-left")):
            for task, each in by_task(found, f"{group}{pair}", None).items():
                there.setdefault(f"{task}{pair}", {}).update(each)
    shares = sorted({at for each in own.values() for at in each})
    labels = ["0 %", *(percent(at) for at in shares)]
    cells = {
        task: [spread(full.get(task, {}).get(0.0), 2), *(spread(each.get(at), 2) for at in shares)]
        for task, each in own.items()
    }
    sheet = _sheet("BLEU after the cut and training", "removed", labels, cells, printed,
                   [{"ratio": at} for at in (0.0, *shares)])  # fmt: skip
    return DrawnItem(sheets=[sheet])


def patterns(found: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Table 2: the layers thought important kept, or the others."""
    rows, places = [], []
    for each, scores in _patterns(found):
        kept = {"important": "important", "unimportant": "others"}[each["keeps"]]
        rows.append([percent(each["ratio"]), kept, each["keep"], spread(scores, 2)])
        places.append({"ratio": each["ratio"], "keeps": each["keeps"]})
    names, extra = beside(printed, places, "bleu")
    columns = ["removed", "kept", "heads by layer", "BLEU", *names]
    sheet = Sheet(title="Layers that count, kept or cut", columns=columns,
                  rows=[[*row, *more] for row, more in zip(rows, extra, strict=True)])  # fmt: skip
    return DrawnItem(sheets=[sheet])


def _patterns(found: PaperRuns) -> list[tuple[dict[str, Any], dict[int, float]]]:
    out: dict[str, tuple[dict[str, Any], dict[int, float]]] = {}
    for each in found.runs("mt-patterns"):
        keep = str(each.at("keep"))
        counts = [int(digit) for digit in keep.partition(":")[2].partition(" ")[0]]
        lower = counts[: len(counts) // 2]
        first = sum(lower) > sum(counts[-len(lower) :])
        about = {"keep": keep, "keeps": "important" if first else "unimportant",
                 "ratio": share(each)}  # fmt: skip
        out.setdefault(keep, (about, {}))[1][each.seed] = each.score
    return sorted(out.values(), key=lambda pair: (pair[0]["ratio"], pair[0]["keeps"]))


def components(found: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Table 3: each component starved in turn."""
    own: dict[str, tuple[float, str, dict[int, float]]] = {}
    for each in found.runs("mt-components"):
        keep = str(each.at("keep"))
        counts = [int(part) for part in keep.split(",")]
        fewest = STACKS[int(np.argmin(counts))]
        own.setdefault(keep, (share(each), fewest, {}))[2][each.seed] = each.score
    order = sorted(own.items(), key=lambda pair: (pair[1][0], STACKS.index(pair[1][1])))
    rows = [[percent(at), fewest, keep, spread(scores, 2)] for keep, (at, fewest, scores) in order]
    paper = sorted({each.at["ratio"] for each in printed.numbers if each.at["ratio"]})
    places = [
        {"ratio": min(paper, key=lambda one, at=at: abs(one - at)), "fewest": fewest}
        for _, (at, fewest, _) in order
    ]
    names, extra = beside(printed, places, "bleu")
    columns = ["removed", "fewest heads in", "heads kept", "BLEU", *names]
    sheet = Sheet(title="Components starved in turn", columns=columns,
                  rows=[[*row, *more] for row, more in zip(rows, extra, strict=True)],
                  note="The paper's numbers are those of its nearest share of heads.")  # fmt: skip
    return DrawnItem(sheets=[sheet])


def at_random(found: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Table 4: BERT cut at random, then fine-tuned."""
    full, own = found.scores("tuned", "task"), by_task(found, "random", "ratio")
    ratios = sorted({at for each in own.values() for at in each})
    cells = {
        task: [spread(full.get(task)), *(spread(each.get(at)) for at in ratios)]
        for task, each in own.items()
    }
    sheet = _sheet("Score after the cut and fine-tuning", "removed",
                   ["0 %", *(percent(at) for at in ratios)], cells, printed,
                   [{"ratio": at} for at in (0.0, *ratios)])  # fmt: skip
    return DrawnItem(sheets=[sheet])


def layers(found: PaperRuns, printed: PrintedTable, *, half: bool) -> DrawnItem:
    """Tables 5 (some layers emptied) and 6 (half of them)."""
    full, own = found.scores("tuned", "task"), by_task(found, "layers", "empty")
    total = _layers(found)
    names = list(dict.fromkeys(at for each in own.values() for at in each))
    chosen = [name for name in names if not half or _emptied(name, total) == total / 2]
    cells = {
        task: [spread(full.get(task)), *(spread(each.get(at)) for at in chosen)]
        for task, each in own.items()
    }
    paper = {_shape(str(each.at["layers"]), 12): each.at["layers"]
             for each in printed.numbers if "layers" in each.at}  # fmt: skip
    places: list[dict[str, Any]] = [{"method": "all-heads"}]
    places += [{"layers": paper.get(_shape(name, total), name)} for name in chosen]
    sheet = _sheet(
        f"Layers emptied, of {total}", "emptied", [ALL, *chosen], cells, printed, places,
        "The paper's numbers are those of the same share of its twelve layers.",
    )  # fmt: skip
    return DrawnItem(sheets=[sheet])


def _layers(found: PaperRuns) -> int:
    kept = found.runs("layers")[0].record["heads"]["kept"]
    return len(kept.split(",")) if "," in kept else len(kept.split(":")[-1])


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


def random_lines(found: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Figure 1: what is left of the score against the share of heads removed at random."""
    panels, rows = [], []
    for title, group, whole in (
        ("translator", "mt-random", "mt-full"),
        ("BERT", "random", "tuned"),
    ):
        full, own = found.scores(whole, "task"), by_task(found, group, None)
        lines = {
            task: {0.0: [100.0]}
            | {at: [100 * each for each in relative(scores, full[task]).values()]
               for at, scores in each.items()}
            for task, each in own.items()
        }  # fmt: skip
        panels.append(Lines(title=title, lines=lines, x="share of heads removed",
                            y="of all heads, %", level=100.0))  # fmt: skip
        for task, line in lines.items():
            rows += [[title, task, percent(at), Spread(tuple(line[at]), 1)] for at in sorted(line)]
    columns = ["model", "task", "removed", "share of the score"]
    sheet = Sheet(title="Of the score with all heads, %", columns=columns, rows=rows)
    return DrawnItem(sheets=[sheet], figures={"": lines_figure(panels, 2)})


def moved(found: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Figure 2: how much each head's weights move in fine-tuning, after several cuts."""
    from headcount.heads import Layout, Scores
    from headcount.views.transfer import head_map

    figures, rows = {}, []
    for each in found.runs("moved"):
        change = each.record["weight_change"]
        name = _cut_of(each)
        layers_ = change["layers"]["encoder"]
        gap = change["spread"]["encoder"]
        rows.append([name, each.seed, *(f"{value:.4f}" if value is not None else "–"
                                        for value in layers_), gap])  # fmt: skip
        if each.seed == 0 and name not in figures:
            layout = Layout.from_json(each.record["layout"])
            flat = tuple(one for layer in change["heads"]["encoder"] for one in layer)
            figures[name] = head_map(Scores(layout, flat), title=name,
                                     label="mean absolute change")  # fmt: skip
    count = max((len(row) - 3 for row in rows), default=0)
    columns = ["cut", "seed", *(f"layer {at}" for at in range(count)), "spread"]
    note = "Spread: the largest difference of two layers' means, as a share of the mean."
    return DrawnItem(sheets=[Sheet(title="Mean change of the weights", columns=columns, rows=rows,
                               note=note)], figures=figures)  # fmt: skip


def _cut_of(finished: FinishedRun) -> str:
    """The cut that a comparison started from, in words."""
    cut = finished.run.model
    if not isinstance(cut, Run):
        return "all heads"
    options = cut.asked(Prune)
    if isinstance(options.method, Layers):
        return f"layers {options.method.empty} emptied"
    share = percent(options.ratio) if isinstance(options.ratio, float) else "free"
    return f"{options.name} {share}"


def grid(found: PaperRuns, printed: PrintedTable) -> DrawnItem:
    """Batch size × learning rate: the best on some rows, scored on others."""
    own = {(each.at("batch_size"), each.at("learning_rate")): each.score
           for each in found.runs("grid-chosen")}  # fmt: skip
    rates = sorted({rate for _, rate in own})
    rows = [
        [f"batches of {size}", *(own.get((size, rate)) for rate in rates)]
        for size in sorted({size for size, _ in own})
    ]
    best = found.runs("grid-best")
    said = max(own, key=lambda key: own[key])
    note = f"Best on these rows: batches of {said[0]}, rate {said[1]:g}."
    if best:
        note += f" On the other half of the rows it scores {best[0].score:.3f}."
    sheet = Sheet(title="Score on the rows that choose",
                  columns=["", *(f"{rate:g}" for rate in rates)], rows=rows, note=note)  # fmt: skip
    return DrawnItem(sheets=[sheet])


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
