"""Curves, comparisons and sweeps as plans of the one study engine."""

from __future__ import annotations

import json

import pytest

import headcount as hc
from headcount.base.errors import UsageError
from headcount.pruning.methods import make_method
from headcount.studies.compare import compare_plan
from headcount.studies.curve import curve_plan
from headcount.studies.groups import read_plan
from headcount.studies.prunes import told_once
from headcount.studies.sweep import sweep_plan
from headcount.training.options import TrainOptions
from runs.flat import curve

FEW = {"method": make_method("random"), "baseline": 0, "scoring": hc.Scoring(limit=9)}
SHORT = TrainOptions(steps=2)


def like(**more) -> hc.Run:
    return hc.Run("prune", "pocket", task="pocket-sentiment", options=hc.Prune(**{**FEW, **more}))


def keys(group) -> set[str]:
    whole = {"kind": "prune", "model": "pocket", "task": "pocket-sentiment", **group}
    return set(read_plan({"runs": {"points": whole}}).by_key)


def test_plans_are_those_of_a_study_file():
    options = {"baseline": 0, "scoring": {"limit": 9}}
    plan = curve_plan(like(), [make_method("random"), make_method("importance")], [0.25, 0.5], 2)
    axes = {"methods": ["random", "importance"], "ratios": [0.25, 0.5], "seeds": 2}
    assert set(plan.by_key) == keys({**axes, "options": {**options, "gated": True}})
    steps = [{"name": "finetune", "steps": 2}]
    alike = like(repair=(hc.Finetune.of(SHORT),), ratio=0.5)
    plan = compare_plan(alike, {"random": make_method("random")}, 2)
    same = {**options, "repair": steps, "method": "random", "ratio": 0.5}
    assert set(plan.by_key) == keys({"seeds": 2, "options": same})
    method = make_method("straight-through")
    gates = like(method=method, repair=(hc.Finetune.of(SHORT),), ratio="free")
    plan = sweep_plan(gates, "mu", [0.1, 0.2], 2)
    same = {**options, "repair": steps, "ratio": "free"}
    methods = [{"name": "straight-through", "mu": value} for value in (0.1, 0.2)]
    assert set(plan.by_key) == keys({"seeds": 2, "methods": methods, "options": same})


def test_a_note_is_given_once():
    given: list[str] = []
    note = told_once(given.append)
    for text in ("3 rows are shared.", "4 rows are shared.", "Another."):
        note(text)
    assert given == ["3 rows are shared.", "Another."]


@pytest.fixture
def asked(model, task, tokenizer, tmp_path):
    few = {"methods": ["random"], "ratios": [0.5], "seeds": 1, "bootstrap": 0}
    return {"model": model, "task": task, "tokenizer": tokenizer, "out": tmp_path / "c", **few}


def test_overwriting_deletes_only_what_a_study_wrote(asked, tmp_path):
    curve(**asked)
    out = tmp_path / "c"
    (own,) = (path.name for path in (out / "runs").iterdir())
    (out / "runs" / "thesis").mkdir()
    (out / "runs" / "notes.txt").write_text("mine")
    (out / "studies" / "other.json").write_text(
        json.dumps({"name": "other", "asked": {}, "runs": []})
    )
    curve(**{**asked, "limit": 9}, overwrite=True)
    names = {path.name for path in (out / "runs").iterdir()}
    assert {"thesis", "notes.txt"} < names
    assert own not in names
    assert len(names) == 3


def test_a_run_that_another_study_asks_for_is_not_deleted(asked, tmp_path):
    curve(**asked)
    out = tmp_path / "c"
    (own,) = (path.name for path in (out / "runs").iterdir())
    shared = {"name": "other", "asked": {}, "runs": [own]}
    (out / "studies" / "other.json").write_text(json.dumps(shared))
    curve(**{**asked, "limit": 9}, overwrite=True)
    assert own in {path.name for path in (out / "runs").iterdir()}


@pytest.mark.parametrize("name", ["runs", "full.json"])
def test_a_folder_that_no_study_began_is_not_overwritten(asked, tmp_path, name):
    path = tmp_path / "c" / name
    path.parent.mkdir()
    if "." in name:
        path.write_text("{}")
    else:
        (path / "thesis").mkdir(parents=True)
    with pytest.raises(UsageError, match=f"{name} is nothing that this study wrote"):
        curve(**asked, overwrite=True)
    assert path.exists()


def test_without_a_folder_nothing_is_left(asked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(curve(**{**asked, "out": None}).points) == 1
    assert list(tmp_path.iterdir()) == []
