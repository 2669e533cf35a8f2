from __future__ import annotations

from pathlib import Path

import pytest

from headcount.papers.figures_gates import (
    attention_maps,
    cost,
    highest,
    left_by_layer,
    methods_at_half,
)
from headcount.papers.numbers import read_paper
from papers.filled import filled


def test_the_highest_sparsity_is_that_within_the_bound(tmp_path: Path):
    finished = filled(tmp_path, "gates", "gates-full")  # a cut of r scores 0.9 − 0.4 r
    none = highest(finished, "pocket-acceptability", "straight-through", 0.0)
    assert none.values == (0.0, 0.0, 0.0)
    some = highest(finished, "pocket-acceptability", "straight-through", 0.35)
    assert some.values == (75.0, 75.0, 75.0)  # 0.6 of 0.9 is within 35 %, 0.54 is not


def test_methods_stand_beside_the_papers(tmp_path: Path):
    finished = filled(tmp_path, "gates", "gates-full")
    sheet = methods_at_half(finished, read_paper("autoattention").items["table-1"]).sheets[0]
    assert [row[0] for row in sheet.rows] == [
        "all-heads", "random", "importance", "hard-concrete", "meta", "straight-through"
    ]  # fmt: skip
    assert str(sheet.rows[1][1]).startswith("0.710 [")
    assert "paper: mnli" in sheet.columns
    assert sheet.rows[0][sheet.columns.index("paper: mnli")].value == pytest.approx(83.9)


def test_heads_left_are_counted_by_layer(tmp_path: Path):
    finished = filled(tmp_path, "gates")
    sheet = left_by_layer(finished, read_paper("autoattention").items["layers"]).sheets[0]
    assert [str(cell)[:3] for cell in sheet.rows[0][1:]] == ["2.0"] * 6


def test_costs_are_those_of_the_model_without_its_heads(tmp_path: Path):
    finished = filled(tmp_path, "cost")
    (sheet,) = cost(finished, read_paper("autoattention").items["cost"]).sheets
    rows = {row[0]: list(row[1:]) for row in sheet.rows}
    assert rows["parameters, model"][:3] == [1000, 750, 0.75]
    assert rows["megabytes, model"][:3] == pytest.approx([0.004, 0.003, 0.75])
    assert rows["megabytes, heads alone"][:3] == pytest.approx([0.002, 0.001, 0.5])
    operations = "operations as a share of the model's"
    assert rows[operations][:3] == pytest.approx([1.0, 0.75, 0.75])
    assert rows[f"{operations}, heads alone"][:3] == pytest.approx([0.5, 0.25, 0.5])
    assert rows["milliseconds, masked"] == pytest.approx([10, 11, 1.1, 1.089, 1.111])
    assert rows["milliseconds, removed"] == pytest.approx([10, 8, 0.8, 0.792, 0.808])


def test_records_without_models_have_no_attention_maps(tmp_path: Path):
    finished = filled(tmp_path, "shown")
    drawn = attention_maps(finished, read_paper("autoattention").items["figure-3"], large=False)
    assert drawn.figures == {}
    assert drawn.notes[0] == "12 of 24 heads stay (222222 by layer)."
    assert drawn.notes[1] == "Where heads look is drawn from two models that are not here."
