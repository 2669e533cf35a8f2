"""Layers with a planted order: RA3 and RA4 come out as planted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from headcount.heads import Layout
from headcount.papers import claims_layers
from headcount.papers.claims import Word
from headcount.papers.claims_layers import SEVEN
from headcount.studies.plan import Cell
from papers.pocket_study import PocketStudy, symmetric


@pytest.fixture(autouse=True)
def fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws and permutations for a test."""
    for name, count in {"RESAMPLES": 100, "PERMUTATIONS": 199, "CLUSTERINGS": 60}.items():
        monkeypatch.setattr(claims_layers, name, count)


LAYOUT = Layout.of(encoder=[4] * 8)
LAYERS = np.repeat(np.arange(8), 4)
GAP = np.abs(LAYERS[:, None] - LAYERS)


def plant(
    folder: Path, value: Callable[[str, str], np.ndarray], *more: str, layout: Layout = LAYOUT
) -> PocketStudy:
    """`value` of (group, distance) is the same for all inputs but for some noise."""
    study = PocketStudy(folder, "near", "near-random", "near-tuned")
    rng = np.random.default_rng(0)
    for group in ("near", "near-random", *more):

        def measured(_: Cell, group: str = group) -> dict[str, np.ndarray]:
            noise = 0.01 * rng.standard_normal(GAP.shape)
            return {d: symmetric(value(group, d) + noise) for d in SEVEN}

        study.fill(group, matrices=measured, layout=layout)
    return study


FLAT = 0.5 + 0.1 * np.random.default_rng(1).standard_normal(GAP.shape)


@pytest.mark.parametrize(
    ("matrix", "word"),
    [(0.2 + 0.05 * GAP, "holds"), (0.7 - 0.05 * GAP, "does not hold"), (FLAT, "undecided")],
)
def test_near_layers_are_alike_as_planted(tmp_path: Path, matrix: np.ndarray, word: Word) -> None:
    verdict = plant(tmp_path, lambda *_: matrix).judge("RA3")
    assert verdict.word == word
    assert len(verdict.tested) == 1 + 7
    first = verdict.tested[0]
    assert first.low <= first.value <= first.high
    assert (first.n, first.of) == (32, "heads")


def test_the_correlation_is_over_gaps_and_not_over_pairs(tmp_path: Path) -> None:
    verdict = plant(tmp_path, lambda *_: FLAT).judge("RA3")
    mean = symmetric(FLAT)
    means = [mean[(gap == GAP) & ~np.eye(32, dtype=bool)].mean() for gap in range(8)]
    assert verdict.tested[0].value == pytest.approx(spearmanr(range(8), means).statistic, abs=0.1)


def test_distances_and_phases_have_lines_of_their_own(tmp_path: Path) -> None:
    def value(group: str, d: str) -> np.ndarray:
        against = group == "near-tuned" or d == "js"
        return 0.7 - 0.05 * GAP if against else 0.2 + 0.05 * GAP

    verdict = plant(tmp_path, value, "near-tuned").judge("RA3")
    words = {row.what.partition("distance, ")[2]: row.verdict for row in verdict.tested}
    assert verdict.word == words["cos"] == "holds"
    assert words["js"] == words["mean of seven distances, fine-tuned"] == "does not hold"


def test_few_heads_that_seem_in_order_are_not_enough(tmp_path: Path) -> None:
    """All heads of a draw keep the order, and so do too many permutations of them."""
    layers = np.arange(4)
    gap = np.abs(layers[:, None] - layers)
    study = PocketStudy(tmp_path, "near", "near-random", "near-tuned")
    for group in ("near", "near-random"):
        study.fill(
            group,
            matrices=lambda _: {d: 0.1 * gap.astype(float) for d in SEVEN},
            layout=Layout.of(encoder=[1] * 4),
        )
    verdict = study.judge("RA3")
    assert verdict.tested[0].value == pytest.approx(1.0)
    assert verdict.word == "undecided"
    assert "3 gaps of layers are few points to rank" in verdict.tested[0].note


def blocks(labels: list[int], spread: float = 0.0) -> np.ndarray:
    """Heads of layers with one label are near; with a spread, heads stray from their layer."""
    group = np.repeat(labels, 4)
    rng = np.random.default_rng(2)
    away = spread * rng.random((32, 32))
    return np.where(group[:, None] == group, 0.2, 0.6) + away


@pytest.mark.parametrize(
    ("matrix", "word", "labels"),
    [
        (blocks([0, 0, 0, 1, 1, 1, 2, 2]), "holds", "0-0-0-1-1-1-2-2"),
        (blocks([0, 1, 0, 1, 0, 1, 2, 2]), "does not hold", "0-1-0-1-0-1-2-2"),
    ],
)
def test_groups_of_layers_come_out_as_planted(
    tmp_path: Path, matrix: np.ndarray, word: Word, labels: str
) -> None:
    verdict = plant(tmp_path, lambda *_: matrix, "near-tuned").judge("RA4")
    assert verdict.word == word
    assert f"clusters {labels}, " in verdict.tested[0].note
    assert ("not contiguous" in verdict.tested[0].note) is (word == "does not hold")
    assert len(verdict.tested) == 2 + 4 + 2


def test_groups_that_a_few_heads_make_are_undecided(tmp_path: Path) -> None:
    """The fourth layer's heads are half with the first group, half with the last."""
    group = np.repeat([0, 0, 0, 1, 1, 1, 2, 2], 4)
    group[12:16] = [0, 0, 1, 1]
    group[4:8] = [0, 1, 1, 0]
    matrix = np.where(group[:, None] == group, 0.2, 0.6)
    verdict = plant(tmp_path, lambda *_: matrix).judge("RA4")
    assert verdict.word == "undecided"
    assert verdict.tested[0].low < 0.8 <= verdict.tested[0].high


def test_the_first_layer_alone_may_spoil_the_groups(tmp_path: Path) -> None:
    verdict = plant(tmp_path, lambda *_: blocks([1, 0, 0, 1, 1, 1, 2, 2])).judge("RA4")
    assert verdict.word == "does not hold"
    assert verdict.tested[1].what.endswith("without the first layer")
    assert verdict.tested[1].verdict == "holds"
    assert verdict.tested[1].n == verdict.tested[0].n - 4


def test_only_token_based_distances_decide_on_groups(tmp_path: Path) -> None:
    def value(_: str, d: str) -> np.ndarray:
        apart = d in ("dcor", "pc", "cc")
        return blocks([0, 1, 0, 1, 0, 1, 2, 2] if apart else [0, 0, 0, 1, 1, 1, 2, 2])

    verdict = plant(tmp_path, value).judge("RA4")
    assert verdict.word == "holds"
    assert verdict.tested[-1].verdict == "does not hold"
    assert "sentence-based" in verdict.tested[-1].what
