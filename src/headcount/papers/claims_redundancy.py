"""The claims of On Attention Redundancy (NAACL 2021) on how matrices agree, tested: RA1, 2, 5–7."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from headcount.likeness.distances import SENTENCE_BASED, TOKEN_BASED
from headcount.papers.claims import TestedStatistic, tests, worst
from headcount.papers.claims_tools import noted
from headcount.papers.finished import PaperRuns
from headcount.papers.head_matrices import (
    AFTER,
    BEFORE,
    RANDOM,
    SHORT,
    SLOW,
    HeadMatrices,
    Key,
    inputs_of,
    matrices,
)
from headcount.papers.seeds import at_least, at_most, more_than

SEVEN = (*TOKEN_BASED, *SENTENCE_BASED)
ONE, LIKE, INFER = "one sentence", "similarity", "inference"
KINDS = {
    "pocket-acceptability": ONE, "pocket-sentiment": ONE, "cola": ONE, "sst2": ONE,
    "pocket-paraphrase": LIKE, "pocket-similarity": LIKE, "mrpc": LIKE, "qqp": LIKE, "stsb": LIKE,
    "pocket-entailment": INFER, "rte": INFER, "wnli": INFER, "mnli": INFER, "qnli": INFER,
}  # fmt: skip
"""Task -> its kind, as GLUE sorts them."""
PERMUTATIONS = 999
PRINTED = "pq"
"""The Bhattacharyya distance as the paper prints it."""
LOOKS = "looks"
"""A group that measured how far heads spread their attention; it need not be there."""


@tests("RA1", "near", "near-random")
def token_based(found: PaperRuns) -> Sequence[TestedStatistic]:
    """The token-based distances with each other: bc read both ways, and without it."""
    rows = _agreement(found, TOKEN_BASED).answers()
    undoubted = [name for name in TOKEN_BASED if name != "bc"]
    own = matrices(found, "near", "near-printed")
    table = HeadMatrices(
        {key: each for key, each in own.items() if key[2] in (*undoubted, PRINTED)}
    )
    readings = [undoubted]
    if any(name == PRINTED for _, _, name in table.keys):
        readings.append([*undoubted, PRINTED])
    for names in readings:
        what = f"smallest r among {', '.join(names)}, tasks only"
        table.ask_smallest(what, _of_distances(table.keys, BEFORE, names), at_least(0.7))
    without, *printed = table.answers()
    return [
        noted(rows[0], "bc is 1 − Σ √(p q), as the work that the paper cites defines it"),
        *rows[1:],
        noted(without, "whichever way bc is read"),
        *(noted(each, "pq is 1 − Σ p q, as the appendix prints bc") for each in printed),
        *_focused(found),
    ]


def _focused(found: PaperRuns) -> list[TestedStatistic]:
    """The same of some heads only: by how far they spread their attention, and by special tokens.

    Of a row of nearly equal weights corr compares the rest, which is noise; bc and js see that two
    such rows are alike. Rows with one peak at a special token all four compare by that peak. Heads
    that do the one hardly do the other, so each is also varied among heads alike in the other.
    """
    if not found.is_whole([LOOKS]):
        return []
    spread = _looked(found, "entropy_share")
    special = _looked(found, "first") + _looked(found, "separator")
    own = {k: m for k, m in matrices(found, "near", "near-random").items() if k[2] in TOKEN_BASED}
    order, half = np.argsort(spread), len(spread) // 2
    peaked = np.argsort(-special)
    close, wide = _halves(spread, among=special)
    elsewhere, there = _halves(special, among=spread)
    parts = {
        "without the quarter of heads that spread their attention most": order[: -len(order) // 4],
        "the half of heads that spread their attention least": order[:half],
        "the half of heads that spread their attention most": order[half:],
        "the half of heads that look at special tokens most": peaked[:half],
        "the half of heads that look at special tokens least": peaked[half:],
        "of two that look at special tokens as much the one that spreads less": close,
        "of two that look at special tokens as much the one that spreads more": wide,
        "of two that spread as much the one that looks at special tokens less": elsewhere,
        "of two that spread as much the one that looks at special tokens more": there,
    }
    rows: list[TestedStatistic] = []
    for said, heads in parts.items():
        table = HeadMatrices({key: matrix[np.ix_(heads, heads)] for key, matrix in own.items()})
        what = f"smallest r among {', '.join(TOKEN_BASED)}, {said}"
        table.ask_smallest(what, _of_distances(own, BEFORE, TOKEN_BASED), at_least(0.7))
        low, mean, high = (100 * at(spread[heads]) for at in (np.min, np.mean, np.max))
        note = (
            f"entropy of {low:.0f} to {high:.0f} % of that of equal attention, {mean:.0f} % in the "
            f"mean; {100 * special[heads].mean():.0f} % of attention at special tokens"
        )
        rows += [noted(each, note) for each in table.answers()]
    return rows


def _looked(found: PaperRuns, name: str) -> np.ndarray:
    """A quantity of how every head looks, mean over inputs."""
    runs = found.runs(LOOKS)
    return np.mean([each.record["quantities"][name]["values"] for each in runs], axis=0)


def _halves(by: np.ndarray, *, among: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of every two heads that are alike in one quantity, those with less and with more of another.

    >>> _halves(np.array([5, 1, 2, 9]), among=np.array([0, 10, 1, 11]))
    (array([2, 1]), array([0, 3]))
    """
    order = np.argsort(among, kind="stable")
    twos = order[: len(order) // 2 * 2].reshape(-1, 2)
    less = by[twos].argmin(1)
    each = np.arange(len(twos))
    return twos[each, less], twos[each, 1 - less]


@tests("RA2", "near", "near-random")
def sentence_based(found: PaperRuns) -> Sequence[TestedStatistic]:
    """The sentence-based distances with each other."""
    return _agreement(found, SENTENCE_BASED).answers()


def _agreement(found: PaperRuns, names: Sequence[str]) -> HeadMatrices:
    """The smallest r of these distances: on all inputs, on each, after fine-tuning, and short."""
    own = matrices(found, "near", "near-random", "near-tuned", "near-short")
    table = HeadMatrices({key: each for key, each in own.items() if key[2] in names})
    said = f"smallest r among {', '.join(names)}"
    table.ask_smallest(f"{said}, all inputs", _of_distances(own, BEFORE, names), at_least(0.7))
    after = _of_distances(own, AFTER, names)
    table.ask_smallest(f"{said}, fine-tuned, all inputs", after, at_least(0.7))
    for inputs in inputs_of(own, BEFORE):
        one = [pair for pair in _of_distances(own, BEFORE, names) if pair[0][1] == inputs]
        table.ask_smallest(f"{said}, {inputs}", one, at_least(0.7))
    table.ask_smallest(f"{said}, {SHORT}", _of_distances(own, SHORT, names), at_least(0.7))
    return table


def _of_distances(
    keys: Sequence[Key] | dict[Key, np.ndarray], phase: str, names: Sequence[str]
) -> list[tuple[Key, Key]]:
    """Two distances on the same inputs."""
    pairs = [
        ((phase, inputs, a), (phase, inputs, b))
        for inputs in inputs_of(keys, phase)
        for a, b in combinations(names, 2)
    ]
    return [pair for pair in pairs if set(pair) <= set(keys)]


@tests("RA5", "near", "near-tuned")
def phases(found: PaperRuns) -> Sequence[TestedStatistic]:
    """The pre-trained with the fine-tuned model: correlations, and the mean absolute difference."""
    table = HeadMatrices(matrices(found, "near", "near-tuned", "near-slow"))
    tasks = [task for task in inputs_of(table.keys, AFTER) if task in inputs_of(table.keys, BEFORE)]

    def which(*those: str, after: str = AFTER) -> list[tuple[Key, Key]]:
        return [((BEFORE, task, d), (after, task, d)) for task in those for d in SEVEN]

    a, b = table.places(which(*tasks))
    table.ask_smallest("smallest r of pre-trained with fine-tuned", which(*tasks), at_least(0.9))
    said = "mean absolute difference of pre-trained and fine-tuned"
    table.ask(said, lambda _, flat: np.abs(flat[a] - flat[b]).mean(), at_most(0.05))
    largest = f"largest {said}, of any task and distance"
    table.ask(largest, lambda _, flat: np.abs(flat[a] - flat[b]).mean(1).max(), at_most(0.05))
    for task in tasks:
        own, other = table.places(which(task))
        table.ask_smallest(f"smallest r, {task}", which(task), at_least(0.9))
        table.ask(
            f"mean absolute difference, {task}",
            lambda _, flat, own=own, other=other: np.abs(flat[own] - flat[other]).mean(),
            at_most(0.05),
        )  # fmt: skip
    for task in inputs_of(table.keys, SLOW):
        slow = which(task, after=SLOW)
        table.ask_smallest(f"smallest r, {task}, {SLOW}", slow, at_least(0.9))
    first, second, *rest = table.answers()
    both = worst([first.verdict, second.verdict])
    note = f"the verdict is on r ({first.verdict}) and on the difference ({second.verdict})"
    return [noted(first, note, both), second, *rest]


@tests("RA6", "near", "near-random")
def tasks_alike(found: PaperRuns) -> Sequence[TestedStatistic]:
    """Pairs of inputs: the smallest correlation of all distances, of each, and after training."""
    table = HeadMatrices(matrices(found, "near", "near-random", "near-tuned", "near-short"))

    def which(phase: str, *names: str) -> list[tuple[Key, Key]]:
        two = list(combinations(inputs_of(table.keys, phase), 2))
        return [((phase, a, name), (phase, b, name)) for name in names for a, b in two]

    every = which(BEFORE, *SEVEN)
    with_random = [pair for pair in every if RANDOM in (pair[0][1], pair[1][1])]
    tasks = [pair for pair in every if pair not in with_random]
    table.ask_smallest("smallest r between inputs, random tokens included", every, at_least(0.8))
    table.ask_smallest("smallest r between tasks", tasks, at_least(0.8))
    table.ask_smallest("smallest r of a task with random tokens", with_random, at_least(0.8))
    table.ask_smallest(
        "smallest r between tasks, each read by its fine-tuned model", which(AFTER, *SEVEN),
        at_least(0.8),
    )  # fmt: skip
    for name in SEVEN:
        table.ask_smallest(f"smallest r between inputs, {name}", which(BEFORE, name), at_least(0.8))
    table.ask_smallest(f"smallest r between tasks, {SHORT}", which(SHORT, *SEVEN), at_least(0.8))
    return table.answers()


@tests("RA7", "near")
def kinds(found: PaperRuns) -> Sequence[TestedStatistic]:
    """Correlations of tasks of one kind minus those of different kinds."""
    table = HeadMatrices(matrices(found, "near", "near-tuned"))
    _ask_kinds(table, BEFORE, SEVEN, "")
    longer = {task for task, kind in KINDS.items() if kind != ONE}
    _ask_kinds(table, BEFORE, SEVEN, ", tasks of two sentences only", longer)
    _ask_kinds(table, AFTER, SEVEN, ", fine-tuned")
    for name in SEVEN:
        _ask_kinds(table, BEFORE, [name], f", {name}")
    return table.answers()


def _ask_kinds(
    table: HeadMatrices, phase: str, names: Sequence[str], said: str, only: set[str] | None = None
) -> None:
    known = set(KINDS) if only is None else only
    tasks = [task for task in inputs_of(table.keys, phase) if task in known]
    two = list(combinations(tasks, 2))
    same = [pair for pair in two if KINDS[pair[0]] == KINDS[pair[1]]]
    other = [pair for pair in two if pair not in same]
    if not same or not other:
        return
    within, between = (
        table.places([((phase, a, d), (phase, b, d)) for a, b in those for d in names])
        for those in (same, other)
    )
    note = f"pairs of tasks: {len(same)} within kinds, {len(other)} between; " + (
        f"kinds given to tasks at random: p {_chance(table, phase, names, tasks):.2g}; "
        "the interval is over heads, tasks taken as they are"
    )
    table.ask(
        f"mean r within kinds minus between{said}",
        lambda r, _: r[within].mean() - r[between].mean(),
        more_than(0.0), n=len(two), of="pairs of tasks", note=note,
    )  # fmt: skip


def _chance(table: HeadMatrices, phase: str, names: Sequence[str], tasks: Sequence[str]) -> float:
    """How often kinds that are given to the tasks at random are as far apart."""
    r = table.correlations()
    a, b = np.triu_indices(len(tasks), 1)
    place = np.array([[table.keys.index((phase, task, name)) for task in tasks] for name in names])
    mean = r[place[:, a], place[:, b]].mean(0)
    own = np.array([KINDS[task] for task in tasks])

    def apart(kinds: np.ndarray) -> float:
        same = kinds[a] == kinds[b]
        return float(mean[same].mean() - mean[~same].mean())

    rng = np.random.default_rng(0)
    drawn = [apart(rng.permutation(own)) for _ in range(PERMUTATIONS)]
    return (1 + sum(each >= apart(own) - 1e-12 for each in drawn)) / (1 + PERMUTATIONS)
