"""The claims of On Attention Redundancy (NAACL 2021) on how matrices agree, tested: RA1, 2, 5–7."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

import numpy as np

from headcount.likeness.agreement import Matrix
from headcount.likeness.distances import SENTENCE_BASED, TOKEN_BASED
from headcount.papers import head_matrices as heads
from headcount.papers.claims import Statistic, tests
from headcount.papers.estimates import SampleSize, at_least, at_most, more_than, noted
from headcount.papers.finished import PaperRuns
from headcount.papers.head_matrices import (
    AFTER,
    BEFORE,
    SEVEN,
    Compute,
    HeadMatrices,
    Key,
    inputs_of,
)

ONE, LIKE, INFER = "one sentence", "similarity", "inference"
BY_KIND = {
    ONE: ("pocket-acceptability", "pocket-sentiment", "cola", "sst2"),
    LIKE: ("pocket-paraphrase", "pocket-similarity", "mrpc", "qqp", "stsb"),
    INFER: ("pocket-entailment", "rte", "wnli", "mnli", "qnli"),
}
KINDS = {task: kind for kind, tasks in BY_KIND.items() for task in tasks}
"""Task -> its kind, as GLUE sorts them."""
PERMUTATIONS = 999
PRINTED = "pq"
"""The Bhattacharyya distance as the paper prints it."""
LOOKS = "looks"
"""A group that measured how far heads spread their attention; it need not be there."""


@tests("RA1", "near", "near-random")
def token_based(finished: PaperRuns) -> Sequence[Statistic]:
    """The token-based distances with each other: bc read both ways, and without it."""
    rows = _agreement(finished, TOKEN_BASED).statistics()
    undoubted = [name for name in TOKEN_BASED if name != "bc"]
    measured = heads.matrices(finished, "near", "near-printed")
    table = HeadMatrices(_only(measured, (*undoubted, PRINTED)))
    readings = [undoubted]
    if any(name == PRINTED for _, _, name in table.keys):
        readings.append([*undoubted, PRINTED])
    for names in readings:
        what = f"smallest r among {', '.join(names)}, tasks only"
        table.add_smallest(what, _of_distances(table.keys, BEFORE, names), at_least(0.7))
    without, *printed = table.statistics()
    return [
        noted(rows[0], "bc is 1 − Σ √(p q), as the work that the paper cites defines it"),
        *rows[1:],
        noted(without, "whichever way bc is read"),
        *(noted(row, "pq is 1 − Σ p q, as the appendix prints bc") for row in printed),
        *_focused(finished),
    ]


def _only(matrices: Mapping[Key, Matrix], names: Collection[str]) -> dict[Key, Matrix]:
    """The matrices of some distances."""
    return {key: matrix for key, matrix in matrices.items() if key[2] in names}


def _focused(finished: PaperRuns) -> list[Statistic]:
    """The same of some heads only: by how far they spread their attention, and by special tokens.

    Of a row of nearly equal weights corr compares the rest, which is noise; bc and js see that two
    such rows are alike. Rows with one peak at a special token all four compare by that peak. Heads
    that do the one hardly do the other, so each is also varied among heads alike in the other.
    """
    if not finished.is_whole(LOOKS):
        return []
    spread = _quantity(finished, "entropy_share")
    special = _quantity(finished, "first") + _quantity(finished, "separator")
    measured = _only(heads.matrices(finished, "near", "near-random"), TOKEN_BASED)
    order, half = np.argsort(spread), len(spread) // 2
    peaked = np.argsort(-special)
    close, wide = _halves(spread, among=special)
    less, more = _halves(special, among=spread)
    parts = {
        "without the quarter of heads that spread their attention most": order[: -len(order) // 4],
        "the half of heads that spread their attention least": order[:half],
        "the half of heads that spread their attention most": order[half:],
        "the half of heads that look at special tokens most": peaked[:half],
        "the half of heads that look at special tokens least": peaked[half:],
        "of two that look at special tokens as much the one that spreads less": close,
        "of two that look at special tokens as much the one that spreads more": wide,
        "of two that spread as much the one that looks at special tokens less": less,
        "of two that spread as much the one that looks at special tokens more": more,
    }
    rows: list[Statistic] = []
    for name, part in parts.items():
        table = HeadMatrices({key: matrix[np.ix_(part, part)] for key, matrix in measured.items()})
        what = f"smallest r among {', '.join(TOKEN_BASED)}, {name}"
        table.add_smallest(what, _of_distances(measured, BEFORE, TOKEN_BASED), at_least(0.7))
        low, mean, high = (100 * at(spread[part]) for at in (np.min, np.mean, np.max))
        note = (
            f"entropy of {low:.0f} to {high:.0f} % of that of equal attention, {mean:.0f} % in the "
            f"mean; {100 * special[part].mean():.0f} % of attention at special tokens"
        )
        rows += [noted(row, note) for row in table.statistics()]
    return rows


def _quantity(finished: PaperRuns, name: str) -> np.ndarray:
    """A quantity of how every head looks, mean over inputs."""
    return np.mean([np.array(run.quantity(name), float) for run in finished.runs(LOOKS)], axis=0)


def _halves(by: np.ndarray, *, among: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of every two heads that are alike in one quantity, those with less and with more of another.

    >>> _halves(np.array([5, 1, 2, 9]), among=np.array([0, 10, 1, 11]))
    (array([2, 1]), array([0, 3]))
    """
    order = np.argsort(among, kind="stable")
    twos = order[: len(order) // 2 * 2].reshape(-1, 2)
    less, rows = by[twos].argmin(1), np.arange(len(twos))
    return twos[rows, less], twos[rows, 1 - less]


@tests("RA2", "near", "near-random")
def sentence_based(finished: PaperRuns) -> Sequence[Statistic]:
    """The sentence-based distances with each other."""
    return _agreement(finished, SENTENCE_BASED).statistics()


def _agreement(finished: PaperRuns, names: Sequence[str]) -> HeadMatrices:
    """The smallest r of these distances: on all inputs, on each, after fine-tuning, and short."""
    measured = heads.matrices(finished, "near", "near-random", "near-tuned", "near-short")
    table = HeadMatrices(_only(measured, names))
    what = f"smallest r among {', '.join(names)}"
    before = _of_distances(measured, BEFORE, names)
    table.add_smallest(f"{what}, all inputs", before, at_least(0.7))
    after = _of_distances(measured, AFTER, names)
    table.add_smallest(f"{what}, fine-tuned, all inputs", after, at_least(0.7))
    for inputs in inputs_of(measured, BEFORE):
        same = [pair for pair in before if pair[0][1] == inputs]
        table.add_smallest(f"{what}, {inputs}", same, at_least(0.7))
    short = _of_distances(measured, heads.SHORT, names)
    table.add_smallest(f"{what}, {heads.SHORT}", short, at_least(0.7))
    return table


def _of_distances(keys: Collection[Key], phase: str, names: Sequence[str]) -> list[tuple[Key, Key]]:
    """Two distances on the same inputs."""
    pairs = [
        ((phase, inputs, a), (phase, inputs, b))
        for inputs in inputs_of(keys, phase)
        for a, b in combinations(names, 2)
    ]
    return [pair for pair in pairs if set(pair) <= set(keys)]


@tests("RA5", "near", "near-tuned")
def phases(finished: PaperRuns) -> Sequence[Statistic]:
    """The pre-trained with the fine-tuned model: correlations, and the mean absolute difference."""
    table = HeadMatrices(heads.matrices(finished, "near", "near-tuned", "near-slow"))
    tasks = [task for task in inputs_of(table.keys, AFTER) if task in inputs_of(table.keys, BEFORE)]

    def which(*tasks: str, after: str = AFTER) -> list[tuple[Key, Key]]:
        return [((BEFORE, task, name), (after, task, name)) for task in tasks for name in SEVEN]

    def difference(*tasks: str) -> Compute:
        a, b = table.positions(which(*tasks))
        return lambda _, flat: np.abs(flat[a] - flat[b]).mean()

    a, b = table.positions(which(*tasks))
    table.add_smallest("smallest r of pre-trained with fine-tuned", which(*tasks), at_least(0.9))
    what = "mean absolute difference of pre-trained and fine-tuned"
    table.add(what, difference(*tasks), at_most(0.05))
    largest = f"largest {what}, of any task and distance"
    table.add(largest, lambda _, flat: np.abs(flat[a] - flat[b]).mean(1).max(), at_most(0.05))
    for task in tasks:
        table.add_smallest(f"smallest r, {task}", which(task), at_least(0.9))
        table.add(f"mean absolute difference, {task}", difference(task), at_most(0.05))
    for task in inputs_of(table.keys, heads.SLOW):
        slow = which(task, after=heads.SLOW)
        table.add_smallest(f"smallest r, {task}, {heads.SLOW}", slow, at_least(0.9))
    first, second, *rest = table.statistics()
    note = f"the verdict is on r ({first.verdict}) and on the difference ({second.verdict})"
    return [noted(first, note, [first, second]), second, *rest]


@tests("RA6", "near", "near-random")
def tasks_alike(finished: PaperRuns) -> Sequence[Statistic]:
    """Pairs of inputs: the smallest correlation of all distances, of each, and after training."""
    groups = ("near", "near-random", "near-tuned", "near-short")
    table = HeadMatrices(heads.matrices(finished, *groups))

    def which(phase: str, *names: str) -> list[tuple[Key, Key]]:
        two = list(combinations(inputs_of(table.keys, phase), 2))
        return [((phase, a, name), (phase, b, name)) for name in names for a, b in two]

    every = which(BEFORE, *SEVEN)
    with_random = [pair for pair in every if heads.RANDOM in (pair[0][1], pair[1][1])]
    compared = {
        "smallest r between inputs, random tokens included": every,
        "smallest r between tasks": [pair for pair in every if pair not in with_random],
        "smallest r of a task with random tokens": with_random,
        "smallest r between tasks, each read by its fine-tuned model": which(AFTER, *SEVEN),
        **{f"smallest r between inputs, {name}": which(BEFORE, name) for name in SEVEN},
        f"smallest r between tasks, {heads.SHORT}": which(heads.SHORT, *SEVEN),
    }
    for what, pairs in compared.items():
        table.add_smallest(what, pairs, at_least(0.8))
    return table.statistics()


@tests("RA7", "near")
def kinds(finished: PaperRuns) -> Sequence[Statistic]:
    """Correlations of tasks of one kind minus those of different kinds."""
    table = HeadMatrices(heads.matrices(finished, "near", "near-tuned"))
    _add_kinds(table, BEFORE, SEVEN, "", KINDS)
    longer = [task for task, kind in KINDS.items() if kind != ONE]
    _add_kinds(table, BEFORE, SEVEN, ", tasks of two sentences only", longer)
    _add_kinds(table, AFTER, SEVEN, ", fine-tuned", KINDS)
    for name in SEVEN:
        _add_kinds(table, BEFORE, [name], f", {name}", KINDS)
    return table.statistics()


def _add_kinds(
    table: HeadMatrices, phase: str, names: Sequence[str], which: str, known: Collection[str]
) -> None:
    tasks = [task for task in inputs_of(table.keys, phase) if task in known]
    two = list(combinations(tasks, 2))
    same = [pair for pair in two if KINDS[pair[0]] == KINDS[pair[1]]]
    other = [pair for pair in two if pair not in same]
    if not same or not other:
        return
    within, between = (
        table.positions([((phase, a, name), (phase, b, name)) for a, b in two for name in names])
        for two in (same, other)
    )
    note = (
        f"pairs of tasks: {len(same)} within kinds, {len(other)} between; "
        f"kinds given to tasks at random: p {_chance(table, phase, names, tasks):.2g}; "
        "the interval is over heads, tasks taken as they are"
    )
    table.add(
        f"mean r within kinds minus between{which}",
        lambda r, _: r[within].mean() - r[between].mean(),
        more_than(0.0),
        SampleSize(len(two), "pairs of tasks"),
        note,
    )


def _chance(table: HeadMatrices, phase: str, names: Sequence[str], tasks: Sequence[str]) -> float:
    """How often kinds that are given to the tasks at random are as far apart."""
    r = table.correlations()
    a, b = np.triu_indices(len(tasks), 1)
    index = np.array([[table.keys.index((phase, task, name)) for task in tasks] for name in names])
    mean = r[index[:, a], index[:, b]].mean(0)
    kinds = np.array([KINDS[task] for task in tasks])

    def apart(kinds: np.ndarray) -> float:
        same = kinds[a] == kinds[b]
        return float(mean[same].mean() - mean[~same].mean())

    rng = np.random.default_rng(0)
    drawn = [apart(rng.permutation(kinds)) for _ in range(PERMUTATIONS)]
    return (1 + sum(gap >= apart(kinds) - 1e-12 for gap in drawn)) / (1 + PERMUTATIONS)
