from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headcount.likeness.agreement import pairs
from headcount.papers.figures_redundancy import chances, distances_agree, stand_in
from headcount.papers.numbers import read_paper
from papers.filled import filled, matrices

PRINTED = read_paper("redundancy").items["figure-3"]


def test_distances_agree_as_numpy_says(tmp_path: Path):
    finished = filled(tmp_path, "near")
    sheet = distances_agree(finished, PRINTED, task="cola").sheets[0]
    cell = next(cell for cell in finished.cells["near"] if cell.run.task == "pocket-acceptability")
    measured = matrices(cell)
    token = [pairs(measured[name]) for name in ("cos", "corr", "js", "bc")]
    assert sheet.rows[0][2] == pytest.approx(np.corrcoef(token).min(), abs=1e-6)


def test_the_chance_of_a_head_is_how_often_it_goes(tmp_path: Path):
    finished = filled(tmp_path, "chance")  # the last heads of the layout always go
    rows = chances(finished, read_paper("redundancy").items["figure-8"]).sheets[0].rows
    half = next(row for row in rows if row[0] == "50 %")
    assert half[1:4] == [0.0, 0.5, 1.0]
    assert half[4:] == [4, 10]


def test_a_task_that_is_not_there_has_a_stand_in():
    assert stand_in("qqp", ["pocket-paraphrase", "mrpc"]) == "pocket-paraphrase"
    assert stand_in("qqp", ["mrpc"]) == "mrpc"
    assert stand_in("qqp", ["cola"]) is None
