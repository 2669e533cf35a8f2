from __future__ import annotations

from dataclasses import replace

import pytest

from headcount.costs.timed import BenchResult, BenchRow, Shape
from headcount.costs.timing import Estimate

ROW = BenchRow(
    name="removed 50.0 %", kind="removed", heads=4, sparsity=0.5,
    seconds=Estimate(0.08, 0.076, 0.084), ratio=Estimate(0.8, 0.76, 0.84), ideal=0.75,
    parameters=10, memory=40,
)  # fmt: skip
DENSE = replace(
    ROW, name="dense", ratio=Estimate(1, 1, 1), seconds=Estimate(0.1, 0.1, 0.1), ideal=1
)
SHAPE = Shape(
    batch=8, length=32, reads="32 tokens", rounds=15, share=0.5, ceiling=2.0, rows=(DENSE, ROW)
)


def test_a_row_says_one_thing_in_all_its_forms() -> None:
    data = ROW.to_json()
    assert data["speedup"] == {"median": 1 / 0.8, "low": 1 / 0.84, "high": 1 / 0.76}
    assert data["bound"] == pytest.approx(4 / 3)
    assert data["over_ideal"] == pytest.approx(0.8 / 0.75)
    assert replace(ROW, ideal=None).bound is None
    assert replace(ROW, ideal=0.0).bound is None  # all there is to compute were heads


def test_a_shape_is_precise_when_all_its_rows_are() -> None:
    assert SHAPE.precise
    wide = replace(SHAPE, rows=(DENSE, replace(ROW, ratio=Estimate(0.8, 0.6, 0.84))))
    assert not wide.precise
    assert wide.to_json()["precise"] is False
    assert replace(SHAPE, reads="1 image").to_json()["length"] is None


def test_what_shows_itself_is_short() -> None:
    one = BenchResult(model="BertModel", device="cpu", threads=1, shapes=(SHAPE,))
    assert repr(one) == "BenchResult(BertModel, 8 x 32 tokens on cpu; removed 50.0 % 1.250 ×)"
    assert repr(replace(one, shapes=(SHAPE, SHAPE))).endswith("; 2 shapes)")
    assert one._repr_html_().count("8 × 32 tokens") == 2
