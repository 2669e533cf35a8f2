"""Heads drawn anew: the same as a plain loop, and which matrices are read."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from shutil import rmtree

import numpy as np
import pytest

from headcount.heads import Layout
from headcount.papers.estimates import SampleSize, at_least
from headcount.papers.head_matrices import (
    AFTER,
    BEFORE,
    RANDOM,
    HeadMatrices,
    Key,
    inputs_of,
    matrices,
)
from papers.pocket_study import PocketStudy, symmetric

LAYOUT = Layout.of(encoder=[3, 3])


def some(count: int, seed: int = 0) -> dict[Key, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {("p", "i", str(at)): symmetric(rng.random((6, 6))) for at in range(count)}


def plain_r(a: np.ndarray, b: np.ndarray, heads: list[int]) -> float:
    """Pearson's r over the pairs of places that hold two different heads."""
    x, y = [], []
    for i, j in combinations(range(len(heads)), 2):
        if heads[i] != heads[j]:
            x.append(a[heads[i], heads[j]])
            y.append(b[heads[i], heads[j]])
    mx, my = sum(x) / len(x), sum(y) / len(y)
    top = sum((p - mx) * (q - my) for p, q in zip(x, y, strict=True))
    if len({round(value, 12) for value in x}) < 2:  # two heads only: nothing to correlate
        return float("nan")
    return top / (sum((p - mx) ** 2 for p in x) * sum((q - my) ** 2 for q in y)) ** 0.5


def test_the_smallest_r_and_its_interval_are_those_of_a_plain_loop() -> None:
    measured = some(3)
    table = HeadMatrices(measured, resamples=40, seed=5)
    table.add_smallest("least", list(combinations(measured, 2)), at_least(0.7))
    (finished,) = table.statistics()
    rng = np.random.default_rng(5)
    drawn = []
    for _ in range(40):
        heads = rng.integers(0, 6, 6).tolist()
        drawn.append(
            np.min([plain_r(measured[a], measured[b], heads) for a, b in combinations(measured, 2)])
        )
    every = {pair: plain_r(measured[pair[0]], measured[pair[1]], list(range(6)))
             for pair in combinations(measured, 2)}  # fmt: skip
    assert finished.value == pytest.approx(min(every.values()))
    assert (finished.low, finished.high) == pytest.approx(np.nanquantile(drawn, [0.025, 0.975]))
    assert np.isnan(drawn).any()
    least = min(every, key=every.__getitem__)
    assert f"{least[0][2]} and {least[1][2]} (p, i)" in finished.note
    assert (finished.n, finished.of, finished.seeds) == (6, "heads", 0)


def test_distances_are_handed_on_pair_by_pair() -> None:
    measured = some(2)
    table = HeadMatrices(measured, resamples=3)
    table.add(
        "difference",
        lambda _, flat: np.abs(flat[0] - flat[1]).mean(),
        at_least(0.0),
        SampleSize(4, "heads"),
    )
    (finished,) = table.statistics()
    a, b = measured.values()
    plain = [abs(a[i, j] - b[i, j]) for i, j in combinations(range(6), 2)]
    assert finished.value == pytest.approx(sum(plain) / len(plain))
    assert finished.n == 4


def test_nothing_is_asked_of_no_pairs() -> None:
    table = HeadMatrices(some(2), resamples=3)
    table.add_smallest("none", [], at_least(0.7))
    assert table.statistics() == []


def test_matrices_are_read_by_phase_inputs_and_distance(tmp_path: Path) -> None:
    study = PocketStudy(tmp_path, "near", "near-random", "near-tuned")
    value = symmetric(np.full((6, 6), 0.25))
    study.fill("near", matrices=lambda _: {"js": value, "cc": 2 * value}, layout=LAYOUT)
    study.fill("near-random", matrices=lambda _: {"js": 3 * value}, layout=LAYOUT)
    study.fill("near-tuned", matrices=lambda _: {"js": value}, layout=LAYOUT)
    rmtree(study.finished.ledger.folder_of(study.cells("near-tuned")[0].key))
    finished = matrices(study.finished, "near", "near-random", "near-tuned")
    assert inputs_of(finished, AFTER) == []  # a group that is not whole is left out
    assert inputs_of(finished, BEFORE)[0] == "pocket-acceptability"
    assert inputs_of(finished, BEFORE)[-1] == RANDOM
    assert finished[BEFORE, "pocket-entailment", "cc"][0, 1] == 0.5
    assert finished[BEFORE, RANDOM, "js"][0, 1] == 0.75
