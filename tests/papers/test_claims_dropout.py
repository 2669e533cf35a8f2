"""Curves over dropout with planted slopes: RA10 to RA12."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from headcount.heads import Layout
from headcount.papers.claims import Word
from headcount.papers.claims_dropout import GROUPS, dropout_line, inside
from headcount.studies.plan import Cell
from papers.filled import filled
from papers.pocket_study import PocketStudy, planned

LAYOUT = Layout.of(encoder=[2, 2])
CELLS = planned(tuple(GROUPS.values())).cells
SEEDS = len({cell.axes["seed"] for cell in CELLS if cell.group in GROUPS.values()})
Shape = Callable[[float], float]


def dropout(cell: Cell) -> float:
    return next(value for axis, value in cell.axes.items() if "dropout" in axis)


def plant(
    folder: Path, js: Mapping[str, Shape], dcor: Mapping[str, Shape], wide: float = 0.001
) -> PocketStudy:
    """A mean distance by curve; `wide` is what chance adds or takes.

    Where both ratios are 0.1 the curves have one model: all shapes are 0.5 there.
    """
    study = PocketStudy(folder, *GROUPS.values())
    rng = np.random.default_rng(3)
    for name, group in GROUPS.items():

        def measured(cell: Cell, name: str = name) -> dict[str, np.ndarray]:
            shapes = {"js": js[name], "dcor": dcor[name]}
            return {
                d: (1 - np.eye(4)) * (shape(dropout(cell)) + wide * rng.standard_normal())
                for d, shape in shapes.items()
            }

        study.fill(group, matrices=measured, layout=LAYOUT)
    return study


def n_shape(ratio: float) -> float:
    return float(np.interp(ratio, [0, 0.2, 0.7, 0.9], [0.55, 0.45, 0.65, 0.25]))


def falling(ratio: float) -> float:
    return 0.54 - 0.4 * ratio


def rising(ratio: float) -> float:
    return 0.46 + 0.4 * ratio


def flat(_: float) -> float:
    return 0.5


def all_of(shape: Shape, **others: Shape) -> dict[str, Shape]:
    return dict.fromkeys(GROUPS, shape) | others


@pytest.mark.parametrize(
    ("shapes", "wide", "word"),
    [
        (all_of(n_shape), 0.001, "holds"),
        (all_of(n_shape, attention=flat), 0.001, "holds"),  # told, but it does not decide
        (all_of(falling), 0.001, "does not hold"),
        (all_of(n_shape, hidden=falling), 0.001, "does not hold"),
        (all_of(flat), 0.05, "undecided"),
    ],
)
def test_slopes_come_out_as_planted(
    tmp_path: Path, shapes: dict[str, Shape], wide: float, word: Word
) -> None:
    verdict = plant(tmp_path, shapes, all_of(falling), wide).judge("RA10")
    assert verdict.word == word
    assert len(verdict.tested) == 1 + 9
    assert verdict.tested[0].seeds == SEEDS


def test_a_slope_is_that_of_least_squares_over_its_ratios(tmp_path: Path) -> None:
    verdict = plant(tmp_path, all_of(n_shape), all_of(falling), wide=0.0).judge("RA10")
    first, second, third = verdict.tested[1:4]
    assert first.value == pytest.approx((0.5 - 0.55) / 0.1, abs=1e-5)  # ratios 0 and 0.1
    assert second.value == pytest.approx(0.2 / 0.5, abs=1e-5)  # on a line: 0.3, 0.5 and 0.7
    assert third.value == pytest.approx(-0.4 / 0.2, abs=1e-5)
    assert second.note == "ratios 0.3, 0.5, 0.7"
    assert verdict.tested[0].value == pytest.approx(0.4, abs=1e-5)  # fits its sign worst


def test_longer_trainings_have_a_line_of_their_own_and_decide_nothing(tmp_path: Path) -> None:
    study = plant(tmp_path, all_of(falling), all_of(falling))
    longer = [
        Cell(group="alike-long", axes=cell.axes, run=replace(cell.run, seed=9 + cell.axes["seed"]))
        for cell in study.cells("alike-hidden")
        if dropout(cell) in (0.3, 0.5, 0.7)
    ]
    study.plan = replace(study.plan, cells=[*study.plan.cells, *longer])

    def rises(cell: Cell) -> dict[str, np.ndarray]:
        value = 0.2 + dropout(cell) / 10 + cell.axes["seed"] / 1e5
        return {"js": np.full((4, 4), value), "dcor": np.full((4, 4), 0.5)}

    study.fill("alike-long", matrices=rises, layout=LAYOUT)
    verdict = study.judge("RA10")
    assert verdict.word == "does not hold"
    assert verdict.tested[-1].what.endswith("hidden dropout, trained twice as long (up)")
    assert verdict.tested[-1].value == pytest.approx(0.1, abs=1e-4)
    assert verdict.tested[-1].verdict == "holds"


def test_a_segment_with_one_ratio_takes_the_nearest_beyond() -> None:
    assert inside([0.0, 0.5, 0.9], 0.2, 0.7) == [0.0, 0.5]
    assert inside([0.0, 0.3, 0.6, 0.9], 0.7, 0.9) == [0.6, 0.9]
    assert inside([0.0, 0.2, 0.7], 0.2, 0.7) == [0.2, 0.7]


@pytest.mark.parametrize(
    ("shapes", "wide", "word"),
    [
        (all_of(falling), 0.001, "holds"),
        (all_of(falling, attention=rising), 0.001, "holds"),
        (all_of(rising), 0.001, "does not hold"),
        (all_of(falling, both=rising), 0.001, "does not hold"),
        (all_of(flat), 0.05, "undecided"),
    ],
)
def test_falling_only_comes_out_as_planted(
    tmp_path: Path, shapes: dict[str, Shape], wide: float, word: Word
) -> None:
    verdict = plant(tmp_path, all_of(flat), shapes, wide).judge("RA11")
    assert verdict.word == word
    first = verdict.tested[0]
    assert (first.n, first.of, first.seeds) == (6 * SEEDS, "models", SEEDS)
    assert len(verdict.tested) == 1 + 3


def test_the_note_counts_the_steps_that_fall(tmp_path: Path) -> None:
    verdict = plant(tmp_path, all_of(flat), all_of(n_shape), wide=0.0).judge("RA11")
    assert "falls in 3 of 5 steps" in verdict.tested[0].note


@pytest.mark.parametrize(
    ("js", "dcor", "wide", "word"),
    [
        (all_of(falling, attention=flat), all_of(falling, attention=flat), 0.001, "holds"),
        (all_of(flat, attention=falling), all_of(flat, attention=falling), 0.001, "does not hold"),
        (all_of(falling, attention=flat), all_of(flat, attention=rising), 0.001, "does not hold"),
        (all_of(flat), all_of(flat), 0.05, "undecided"),
    ],
)
def test_what_matters_more_comes_out_as_planted(
    tmp_path: Path, js: dict[str, Shape], dcor: dict[str, Shape], wide: float, word: Word
) -> None:
    verdict = plant(tmp_path, js, dcor, wide).judge("RA12")
    assert verdict.word == word
    assert len(verdict.tested) == 1 + 2 + 2


def test_the_ratio_is_that_of_the_ranges(tmp_path: Path) -> None:
    half = all_of(falling, attention=lambda ratio: 0.51 - 0.1 * ratio)
    verdict = plant(tmp_path, half, half, wide=0.0).judge("RA12")
    assert [row.value for row in verdict.tested] == pytest.approx([4.0] * 5, rel=1e-4)
    assert verdict.tested[0].n == 11 * SEEDS  # of each seed one model is on both curves


def test_a_line_is_the_mean_over_pairs_by_dropout_and_seed(tmp_path: Path):
    finished = filled(tmp_path, "alike-both")
    line = dropout_line(finished, "alike-both", "js")
    assert sorted(line[0]) == [0.0, 0.1, 0.3, 0.5, 0.7, 0.9]
    assert sorted(line) == [0, 1]
    assert 0.1 < line[0][0.3] < 0.7
