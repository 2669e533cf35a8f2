from __future__ import annotations

from pathlib import Path

import pytest

from headcount.papers.figures_layoff import against_importance, frozen, kept, recalls
from headcount.papers.numbers import read_paper
from papers.filled import filled, transfer
from papers.pocket_study import PocketStudy


def test_what_is_left_is_relative_to_the_full_model(tmp_path: Path):
    finished = filled(tmp_path, "words")
    shares = kept(finished, "words", "ratio")
    assert shares[0.5][0] == pytest.approx(0.7 / 0.9)


def test_recall_stands_beside_the_papers_at_the_same_score(tmp_path: Path):
    finished = filled(tmp_path, "drift")
    sheet = recalls(finished, read_paper("lay-off").items["figure-3"]).sheets[0]
    assert sheet.rows[0][1:4] == ["75 %", 0.5, 0.25]
    assert str(sheet.rows[0][4]) == ">90"


def test_a_task_that_needs_no_head_has_no_recall(tmp_path: Path):
    none = {"at": 0.75, "value": None, "chance": 0.25, "p": 1.0, "needed": 0}
    study = PocketStudy(tmp_path, "drift")
    first = study.cells("drift")[0]
    study.fill("drift", lambda cell: transfer(cell) | ({"recall": [none]} if cell == first else {}))
    drawn = recalls(study.finished, read_paper("lay-off").items["figure-3"])
    task = first.axes["task"]
    assert drawn.notes == [f"On {task} 90 % of the score is there without a single head."]
    assert drawn.sheets[0].rows[0][:3] == [task, "75 %", None]
    assert len(drawn.sheets[0].rows) == len(study.cells("drift"))


def test_drift_and_importance_are_correlated_over_heads(tmp_path: Path):
    import numpy as np

    finished = filled(tmp_path, "drift")
    rows = against_importance(finished, read_paper("lay-off").items["figure-6"]).sheets[0].rows
    values = np.arange(24.0)
    assert rows[0][2] == pytest.approx(np.corrcoef(values, np.cos(values))[0, 1])


def test_frozen_layers_are_compared_seed_by_seed(tmp_path: Path):
    finished = filled(tmp_path, "tuned", "frozen")
    sheet = frozen(finished, read_paper("lay-off").items["frozen"]).sheets[0]
    assert str(sheet.rows[0][3]) == "1.000 [1.000, 1.000]"
    assert "the lowest 1" in sheet.note
