from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import headcount as hc
from headcount.base import extras
from headcount.base.errors import UsageError
from headcount.costs import speed
from headcount.costs.cost import cost
from headcount.costs.speed import bench, plan
from models.zoo import build

QUICK: dict[str, Any] = {
    "batch": 2, "length": 8, "repeats": 6, "timing_seconds": 0, "onnx": False,
}  # fmt: skip


def test_a_model_in_memory_is_timed_and_stays_as_it_was() -> None:
    model = build("bert").train()
    small = hc.remove(model, hc.Mask.parse("4102", hc.layout(model)))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    found = bench(model, small, **QUICK)
    assert [row.name for row in found.rows] == ["dense", "masked 56.2 %", "removed 56.2 %"]
    assert (found.name, found.pruned, found.weights, found.notes) == (None, None, "saved", ())
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert repr(found).startswith(
        "BenchResult(BertForSequenceClassification, 2 x 8 tokens on cpu; "
    )
    assert len(repr(found)) <= 100


def test_one_ratio_or_several() -> None:
    model = build("bert")
    one = plan(model, ratio=0.5, length=8)
    assert [(row.name, row.heads) for row in one.rows] == [("removed 50.0 %", 8)]
    assert one.rows[0].ideal == pytest.approx(1 - (cost(model, length=8).share or 0) / 2)
    assert [row.heads for row in plan(model, ratio=[0.25, 1]).rows] == [12, 0]
    assert [row.heads for row in plan(model).rows] == [8, 4, 2]
    assert repr(one) == "BenchPlan(removed 50.0 %: 8 heads)"
    both = plan(model, ratio=0.5, length=[8, 16])
    assert [row.name for row in both.rows] == [
        "removed 50.0 %, 8 tokens",
        "removed 50.0 %, 16 tokens",
    ]
    assert both.rows[0].ideal == one.rows[0].ideal != both.rows[1].ideal


def test_a_named_model_without_weights_has_random_ones_and_a_note(tmp_path: Path) -> None:
    build("bert").save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    found = bench(tmp_path, ratio=1, device="cpu", **QUICK)
    assert (found.name, found.weights) == (str(tmp_path), "random")
    assert found.notes == (f"'{tmp_path}' has no weights; random ones take the same time.",)


def test_a_notebook_shows_the_ways_and_escapes_them() -> None:
    found = bench(build("bert"), ratio=0.5, **QUICK)
    (shape,) = found.shapes
    rows = (*shape.rows, replace(shape.rows[0], name="<script>"))
    evil = replace(found, shapes=(replace(shape, rows=rows),))
    assert evil._repr_html_().count("<tr>") == 2 + len(found.rows)
    assert "<script>" not in evil._repr_html_()


@pytest.mark.parametrize(
    ("model", "settings", "words"),
    [
        (None, {}, "hc.bench takes a transformers model, not NoneType"),
        ("nowhere", {"ratio": 0.5, "pruned": "there"}, "either PRUNED or --ratio"),
        ("nowhere", {"repeats": 2}, "2 rounds are too few"),
    ],
)
def test_what_cannot_be_timed_is_refused(model: Any, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        bench(model, **(QUICK | settings))


def test_onnx_follows_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    notes: list[str] = []
    assert speed.wants_onnx(None, "cpu", notes)
    assert not speed.wants_onnx(None, "cuda", notes)
    assert not speed.wants_onnx(False, "cpu", notes)
    with pytest.raises(hc.HeadcountError, match="timed on the CPU, not on cuda"):
        speed.wants_onnx(True, "cuda", notes)
    assert notes == []
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    assert not speed.wants_onnx(None, "cpu", notes)
    assert notes == ["onnx is not installed, so onnxruntime is not timed."]
    with pytest.raises(hc.HeadcountError, match=r"pip install 'headcount\[onnx\]'"):
        speed.wants_onnx(True, "cpu", notes)
