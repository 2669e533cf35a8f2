"""The claims of Why Can You Lay Off Heads? on curves and frozen layers, tested: LO1–3, 5 and 7."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from headcount.papers.claims import TestedStatistic, tests, worst
from headcount.papers.claims_tools import (
    Curve,
    areas,
    curves,
    first_there,
    last_of,
    noted,
    on_most,
    relative,
)
from headcount.papers.finished import PaperRuns
from headcount.papers.seeds import (
    at_least,
    by_task,
    less_than,
    mean_of,
    measured,
    minus,
    more_than,
    percent,
    relative_to,
    rows_behind,
)

DEFAULT = "l1"
"""How the paper normalises importance after it has compared three ways."""
KEPT, SHARE, FROZEN = 0.9, 0.75, 0.98
AGAIN = "curve-again"
"""A group that measures importance again on the way; it need not be there."""
FULL = ("frozen-full", "tuned")
"""Groups of the model with nothing frozen; the first where its training is not that of others."""
SHARED_CURVES = ("shared-curve", "shared-large-curve")
"""Groups of tasks on which a model with shared layers is cut; a scale need not have them."""
UNSHARED = "unshared-words"
"""A group of a model that is trained as the one with shared layers is, where there is one."""
SAMPLES = "seeds draw other rows to look at and to score"


@tests("LO1", "curve")
def half_go(found: PaperRuns) -> Sequence[TestedStatistic]:
    """The relative score with half the heads gone, least important first, nothing trained."""
    rows = _half(found, "curve", "importance measured once", normalize=DEFAULT)
    for name in ("none", "l2"):
        rows += _half(found, "curve", f"normalised by {name}", normalize=name)[:1]
    if found.is_whole([AGAIN]):
        rows += _half(found, AGAIN, "importance measured again on the way")
    return rows


def _half(found: PaperRuns, group: str, said: str, **wanted: object) -> list[TestedStatistic]:
    runs = found.runs(group, ratio=0.5, **wanted)
    tasks = by_task(runs, relative)
    if not tasks:
        return []
    what = "score with half the heads gone relative to all"
    note = f"{SAMPLES}; of accuracy much is left by guessing alone"
    mean = measured(
        f"{what}, mean over tasks, {said}", mean_of(tasks.values()), more_than(KEPT), note=note,
        **rows_behind(runs),
    )  # fmt: skip
    each = [
        measured(
            f"{what}, {task}, {said}", own, more_than(KEPT),
            **rows_behind(run for run in runs if run.at("task") == task),
        )
        for task, own in tasks.items()
    ]  # fmt: skip
    return [mean, *each]


@tests("LO2", "words", "shared-words")
def shared_layers(found: PaperRuns) -> Sequence[TestedStatistic]:
    """Areas under the curves of a model with layers of its own and of one that shares them."""
    tasks = [name for name in SHARED_CURVES if found.cells.get(name)]
    own = first_there(found, UNSHARED, "words")
    if not found.is_whole([own, *(["curve", *tasks] if tasks else [])]):
        return []
    rows = [_shared(found, "curve", name, DEFAULT) for name in tasks]
    return [*rows[:1], _shared(found, own, "shared-words", None), *rows[1:]]


def _shared(found: PaperRuns, own: str, other: str, norm: str | None) -> TestedStatistic:
    here = curves(found, own, **({"normalize": norm} if norm else {}))
    # of one shared layer all norms rank alike, and some groups have one of them only
    norms = {each.at("normalize") for each in found.runs(other)}
    there = curves(found, other, **({"normalize": norm} if norm in norms and norm else {}))
    to = last_of(here, there)
    apart = minus(areas(here, to), areas(there, to))
    heads = [found.runs(name)[0].record["heads"]["before"] for name in (own, other)]
    note = (
        f"areas up to {percent(to)} of the heads; {heads[0]} heads against {heads[1]}, as the "
        f"paper's models differ, too; {SAMPLES}"
    )
    what = f"area under the relative score, unshared minus shared, {', '.join(apart)} ({other})"
    behind = rows_behind(run for run in found.runs(own) if str(run.at("task")) in apart)
    return measured(what, mean_of(apart.values()), more_than(0.0), note=note, **behind)


@tests("LO3", "curve")
def normalised(found: PaperRuns) -> Sequence[TestedStatistic]:
    """Areas under the curves of importance normalised by l1 against l2 and against none."""
    every = {name: curves(found, "curve", normalize=name) for name in ("l1", "l2", "none")}
    to = last_of(*every.values())
    own = {name: areas(each, to) for name, each in every.items()}
    behind = rows_behind(found.runs("curve"))
    rows, tasks = [], []
    for other in ("l2", "none"):
        apart = minus(own["l1"], own[other])
        said = f"area under the relative score, l1 minus {other}"
        mean = mean_of(apart.values())
        rows.append(measured(f"{said}, mean over tasks", mean, more_than(0.0), **behind))
        tasks += [measured(f"{said}, {task}", each, more_than(0.0)) for task, each in apart.items()]
    first = min(rows, key=lambda row: row.value)
    note = (
        f"the smaller of two, and the verdict on both (l2 {rows[0].verdict}, none "
        f"{rows[1].verdict}); {SAMPLES}"
    )
    return [noted(first, note, worst([row.verdict for row in rows])), *rows, *tasks]


@tests("LO5", "words")
def words_kept(found: PaperRuns) -> Sequence[TestedStatistic]:
    """The share of heads with which the masked language model first falls to 75 %."""
    runs = found.runs("words")
    needed = [
        {seed: needed_for(curve, SHARE) for seed, curve in seeds.items()}
        for seeds in curves(found, "words").values()
    ]
    metric, behind = runs[0].metric, rows_behind(runs)
    note = f"between two ratios on a straight line; {SAMPLES}, the model is one"
    what = f"share of heads needed for {percent(SHARE)} of {metric}"
    rows = [measured(what, mean_of(needed), less_than(0.5), note=note, **behind)]
    half = mean_of(by_task(found.runs("words", ratio=0.5), relative).values())
    if half:
        what = f"{metric} with half the heads relative to all"
        rows.append(measured(what, half, at_least(SHARE), **behind))
    return rows


def needed_for(curve: Curve, share: float) -> float:
    """The share of heads that is left where a curve, from all heads on, first falls to a share.

    What it is at its end where it never does.

    >>> needed_for([(0.0, 1.0), (0.5, 0.8), (0.7, 0.6), (0.9, 0.9)], 0.75)
    0.45
    """
    for (x, y), (further, lower) in pairwise(curve):
        if lower < share:
            there = x + (further - x) * (y - share) / (y - lower)
            return round(1 - there, 12)
    return 1 - curve[-1][0]


@tests("LO7", "tuned", "frozen")
def frozen(found: PaperRuns) -> Sequence[TestedStatistic]:
    """Fine-tuning with the lowest layers standing still, relative to fine-tuning all of them."""
    runs = found.runs("frozen")
    kept = relative_to(by_task(runs), by_task(found.runs(first_there(found, *FULL))))
    tasks = [
        measured(
            f"score relative to fine-tuning all layers, {task}", own, at_least(FROZEN),
            **rows_behind(run for run in runs if run.at("task") == task),
        )
        for task, own in kept.items()
    ]  # fmt: skip
    if not tasks:
        return []
    layers = getattr(getattr(runs[0].run.options, "training", None), "freeze", None)
    said = (
        f"the lowest {layers} layers and the embeddings frozen; the paper: 5 layers of 24; "
        f"the worst task keeps {min(each.value for each in tasks):.3f}"
    )
    what = "share of tasks that keep at least 98 % of the score"
    share = on_most(what, tasks, [each.value >= FROZEN for each in tasks], said)
    mean = mean_of(kept.values())
    return [share, *tasks, measured("relative score, mean over tasks", mean, at_least(FROZEN))]
