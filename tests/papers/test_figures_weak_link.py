from __future__ import annotations

from functools import partial
from pathlib import Path

from headcount.papers.figures_weak_link import FIGURES, layers, patterns
from headcount.papers.numbers import read_paper
from papers.filled import filled


def test_layers_stand_beside_the_same_share_of_the_papers(tmp_path: Path):
    finished = filled(tmp_path, "layers", "tuned")
    printed = read_paper("weak-link").items["table-6"]
    sheet = layers(finished, printed, half=True).sheets[0]
    assert [row[0] for row in sheet.rows] == ["all heads", "top:3", "bottom:3", "even", "odd"]
    top = sheet.rows[1][sheet.columns.index("paper: qqp")]
    assert top == printed.where(task="qqp", layers="top:6")[0]


def test_patterns_are_told_apart_by_where_the_encoder_keeps_more(tmp_path: Path):
    finished = filled(tmp_path, "mt-patterns")
    sheet = patterns(finished, read_paper("weak-link").items["table-2"]).sheets[0]
    assert {row[2][:11]: row[1] for row in sheet.rows if "864" in row[2][:11]} == {
        "encoder:864": "important"
    }
    assert [row[1] for row in sheet.rows].count("others") == 5


def test_the_grid_names_its_best_and_scores_it_on_other_rows(tmp_path: Path):
    finished = filled(tmp_path, "grid-chosen", "grid-best")
    sheet = FIGURES["grid"](finished, read_paper("weak-link").items["grid"]).sheets[0]
    assert len(sheet.rows) == 3
    assert "On the other half of the rows it scores 0.900." in sheet.note


def test_every_figure_is_a_function():
    assert all(callable(draw) or isinstance(draw, partial) for draw in FIGURES.values())


def test_what_starts_from_each_of_other_runs_has_their_seeds(tmp_path: Path):
    finished = filled(tmp_path, "moved")
    runs = finished.runs("moved")
    assert sorted(run.seed for run in runs) == [0, 0, 0, 1, 1, 1]
    drawn = FIGURES["figure-2"](finished, read_paper("weak-link").items["figure-2"])
    (sheet,) = drawn.sheets
    rows = sorted((str(row[0]), row[1]) for row in sheet.rows)
    assert rows == sorted((name, seed) for name in drawn.figures for seed in (0, 1))
    assert len(drawn.figures) == 3
