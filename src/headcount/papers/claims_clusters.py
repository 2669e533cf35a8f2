"""The claims of On Attention Redundancy (NAACL 2021) on zero-shot pruning, tested: RA8 and RA9."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from headcount.heads import Mask
from headcount.papers.claims import TestedStatistic, tests, worst
from headcount.papers.claims_tools import first_there, noted, on_most
from headcount.papers.finished import FinishedRun, PaperRuns
from headcount.papers.seeds import by_task, less_than, measured, more_than, percent, relative_to

Gone: TypeAlias = dict[float, list[list[np.ndarray]]]
"""Ratio -> for every clustering, by layer, which heads went."""

RATIOS = (0.75, 0.85)
LOSS = 0.05
FULL = ("zero-shot-full", "tuned")
"""Groups of the model with all heads; the first where its training is not that of others."""
BETWEEN = (0.25, 0.75)
"""Ratios at which the paper says which heads go."""
ONE_MATRIX, ONE_CHANCE = "zero-shot-one", "chance-one"
"""Groups that cluster heads by one distance only; they need not be there."""


@tests("RA8", "tuned", "zero-shot")
def zero_shot(found: PaperRuns) -> Sequence[TestedStatistic]:
    """Heads cut by clusters of random tokens' attention, then fine-tuned: the relative drop."""
    read = "clusters of the mean of all seven distances"
    first, second = (_at(found, "zero-shot", ratio, read) for ratio in RATIOS)
    rows = [*first[:1], *second[:1], *first[1:], *second[1:]]
    if found.is_whole([ONE_MATRIX]):
        one = [_at(found, ONE_MATRIX, ratio, "clusters of one distance") for ratio in RATIOS]
        rows += [row for each in one for row in each]
    return rows


def _at(found: PaperRuns, group: str, ratio: float, read: str) -> list[TestedStatistic]:
    """The share of tasks that lose less than 5 %, and the drop on each."""
    runs = found.runs(group, ratio=ratio)
    rows = {str(each.at("task")): each.rows for each in runs}
    gone = f"with {percent(ratio)} of the heads gone"
    tasks = [
        measured(
            f"relative drop {gone}, {task}, {read}", drops, less_than(LOSS), n=rows[task],
            of="rows scored", note=_random(found, task),
        )
        for task, drops in _drops(found, runs).items()
    ]  # fmt: skip
    if not tasks:
        return []
    said = f"share of tasks that lose less than 5 % {gone}, {read}"
    return [on_most(said, tasks, [each.value < LOSS for each in tasks]), *tasks]


def _random(found: PaperRuns, task: str) -> str:
    """What as many heads drawn at random lose, at the ratios that there are near these."""
    if not found.is_whole(["random"]):
        return ""
    ratios = sorted({float(each.at("ratio")) for each in found.runs("random")})
    said = []
    for ratio in (each for each in ratios if each >= RATIOS[0] - 0.1):
        drops = _drops(found, found.runs("random", ratio=ratio, task=task)).get(task)
        said += [f"{np.mean(list(drops.values())):.3f} at {percent(ratio)}"] if drops else []
    return f"random heads lose {', '.join(said)}" if said else ""


def _drops(found: PaperRuns, runs: Sequence[FinishedRun]) -> dict[str, dict[int, float]]:
    """Task -> seed -> what a cut loses of the score with all heads, trained alike."""
    whole = by_task(found.runs(first_there(found, *FULL)))
    kept = relative_to(by_task(runs), whole)
    return {task: {seed: 1 - each for seed, each in own.items()} for task, own in kept.items()}


@tests("RA9", "chance")
def which_go(found: PaperRuns) -> Sequence[TestedStatistic]:
    """How often heads of the lower, middle and upper third go, in repeated clusterings."""
    gone = _gone(found.runs("chance"))
    asked = {ratio: own for ratio, own in gone.items() if BETWEEN[0] <= ratio <= BETWEEN[1]}
    trials = {ratio: np.array([_thirds(each) for each in own]) for ratio, own in gone.items()}
    every = np.mean([trials[ratio] for ratio in asked], axis=0)  # (clustering, third)
    rows = {side: _gap(f"{side} third minus middle third", every, side) for side in SIDES}
    count = _spared("at any ratio from 25 to 75 %", asked)
    first = min(rows.values(), key=lambda row: row.value)
    verdict = worst([*(row.verdict for row in rows.values()), count.verdict])
    said = (
        f"the smaller of two; the verdict is on the lower ({rows['lower'].verdict}) and the upper "
        f"third ({rows['upper'].verdict}) and on middle heads that never go ({count.value:g})"
    )
    by_ratio = [
        _gap(f"{side} third minus middle third at {percent(ratio)}", own, side)
        for ratio, own in trials.items()
        for side in SIDES
    ]
    alone = [_spared(f"at {percent(ratio)} alone", {ratio: own}) for ratio, own in gone.items()]
    return [noted(first, said, verdict), *rows.values(), count, *by_ratio, *alone, *_by_one(found)]


def _by_one(found: PaperRuns) -> list[TestedStatistic]:
    """Middle heads that never go where heads are clustered by one distance."""
    runs = found.runs(ONE_CHANCE) if found.is_whole([ONE_CHANCE]) else []
    of: dict[str, list[FinishedRun]] = {}
    for each in runs:
        of.setdefault(" and ".join(each.at("distances")), []).append(each)
    return [
        _spared(f"at any ratio, clusters of {name} only", _gone(own)) for name, own in of.items()
    ]


def _spared(said: str, gone: Gone) -> TestedStatistic:
    """Middle heads that never go, of some clusterings."""
    never, heads = _never(gone)
    return TestedStatistic(
        what=f"middle heads that never go, {said}", value=never,
        verdict="holds" if never else "does not hold", seeds=len(next(iter(gone.values()))),
        n=heads,
        of="heads of the middle third", note="a count of these clusterings: it has no interval",
    )  # fmt: skip


SIDES = {"lower": 0, "upper": 2}


def _gone(runs: Iterable[FinishedRun]) -> Gone:
    """Ratio -> for every clustering, by layer, which heads went."""
    out: Gone = {}
    for each in runs:
        mask = Mask.from_json(each.record["mask"])
        stack = mask.layout.stacks[0]
        layers = [np.ones(heads, bool) for heads in stack.heads]
        for layer, gone in enumerate(layers):
            gone[list(mask.indices(stack.name, layer))] = False
        out.setdefault(float(each.at("ratio")), []).append(layers)
    return out


def _thirds(layers: Sequence[np.ndarray]) -> list[float]:
    """The share of heads that went in each third of the layers."""
    parts = np.array_split(np.arange(len(layers)), 3)
    return [float(np.concatenate([layers[layer] for layer in part]).mean()) for part in parts]


def _never(gone: Gone) -> tuple[int, int]:
    """(middle heads that went in no clustering at any ratio, heads in the middle)."""
    cuts = [layers for own in gone.values() for layers in own]
    middle = np.array_split(np.arange(len(cuts[0])), 3)[1]
    ever = np.any([np.concatenate([layers[layer] for layer in middle]) for layers in cuts], axis=0)
    return int((~ever).sum()), len(ever)


def _gap(what: str, thirds: np.ndarray, side: str) -> TestedStatistic:
    values = (thirds[:, SIDES[side]] - thirds[:, 1]).tolist()
    note = "the interval is over clusterings of one matrix of one model"
    of = {"n": len(values), "of": "clusterings"}
    return measured(f"chance of being pruned, {what}", values, more_than(0.0), note=note, **of)
