from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headcount.likeness.agreement import pairs
from headcount.papers.figures_redundancy import chances, distances_agree, likeness, stand_in
from headcount.papers.numbers import read_printed
from papers.filled import filled, matrices

PRINTED = read_printed("redundancy", "figure-3")


def test_distances_agree_as_numpy_says(tmp_path: Path):
    found = filled(tmp_path, "near")
    sheet = distances_agree(found, PRINTED, task="cola").sheets[0]
    cell = next(each for each in found.cells["near"] if each.run.task == "pocket-acceptability")
    own = matrices(cell)
    token = [pairs(own[name]) for name in ("cos", "corr", "js", "bc")]
    assert sheet.rows[0][2] == pytest.approx(np.corrcoef(token).min(), abs=1e-6)


def test_the_chance_of_a_head_is_how_often_it_goes(tmp_path: Path):
    found = filled(tmp_path, "chance")  # the last heads of the layout always go
    rows = chances(found, read_printed("redundancy", "figure-8")).sheets[0].rows
    half = next(row for row in rows if row[0] == "50 %")
    assert half[1:4] == [0.0, 0.5, 1.0]
    assert half[4:] == [4, 10]


def test_likeness_is_the_mean_over_pairs_by_dropout_and_seed(tmp_path: Path):
    found = filled(tmp_path, "alike-both")
    own = likeness(found, "both", "js")
    assert sorted(own) == [0.0, 0.1, 0.3, 0.5, 0.7, 0.9]
    assert sorted(own[0.3]) == [0, 1]
    assert 0.1 < own[0.3][0] < 0.7


def test_a_task_that_is_not_there_has_a_stand_in():
    assert stand_in("qqp", ["pocket-paraphrase", "mrpc"]) == "pocket-paraphrase"
    assert stand_in("qqp", ["mrpc"]) == "mrpc"
    assert stand_in("qqp", ["cola"]) is None
