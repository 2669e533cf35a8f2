"""A run is a value: written down and read back, it asks the same."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import headcount as hc
from headcount.base.errors import UsageError
from headcount.runs.kinds.redundancy import RedundancyOptions
from headcount.runs.run import Best, Run
from headcount.tasks.source import Source

FULL = Run(
    "prune",
    "bert",
    task="mrpc",
    seed=3,
    source=Source(data=Path("glue"), columns=("a", "b"), label="y", languages=("en", "de"), size=9),
    model_options=hc.ModelOptions(
        tokenizer="other", dtype="float16", device="cpu", allow_pickle=True
    ),
    options=hc.Prune(
        method=hc.Importance(step=0.25, normalize="l1"),
        ratio=0.5,
        repair=(hc.Recover(), hc.Finetune(steps=3)),
        learning=hc.TrainOptions(epochs=2),
        calibration=hc.Calibration(samples=9, rows="texts"),
        scoring=hc.Scoring(split="test", limit=0.5, seed=4, bootstrap=7),
        baseline=1,
    ),
)


def plain(run: Run) -> dict:
    return json.loads(json.dumps(run.to_plain()))


@pytest.mark.parametrize(
    "options",
    [
        FULL.options,
        hc.Prune(method=hc.Random(), ratio=0.5, gated=True),
        hc.Prune(method=hc.Cluster(), ratio="free"),
        hc.Prune(method=hc.Pattern(keep="321")),
        hc.Prune(method=hc.StraightThrough(mu=0.1), ratio=0.25, learning=hc.TrainOptions()),
    ],
    ids=lambda options: options.name,
)
def test_what_is_written_is_read_back(options):
    run = replace(FULL, options=options)
    again = Run.read(plain(run))
    assert again == run
    assert (again.key, plain(again)) == (run.key, plain(run))
    assert plain(run)["options"]["method"]["name"] == options.name


def test_a_model_that_is_a_run_is_one_again():
    chain = replace(FULL, model=replace(FULL, model=FULL))
    again = Run.read(plain(chain))
    assert again == chain
    assert again.model.model == FULL
    assert again.key != FULL.key


def test_what_is_left_out_is_the_default():
    data = {"kind": "prune", "model": "bert", "options": {"method": "random", "ratio": 0.5}}
    assert Run.read(data) == Run("prune", "bert", options=hc.Prune(method=hc.Random(), ratio=0.5))


def test_the_key_is_of_what_is_asked_and_not_of_what_computes_it():
    for model_options in (hc.ModelOptions(device="cuda"), hc.ModelOptions(allow_pickle=True)):
        one, other = (
            replace(FULL, model_options=hc.ModelOptions()),
            replace(FULL, model_options=model_options),
        )
        assert one.key == other.key
    others = [
        replace(FULL, seed=4),
        replace(FULL, task="rte"),
        replace(FULL, source=Source()),
        replace(FULL, model_options=hc.ModelOptions(dtype="bfloat16")),
        replace(FULL, options=replace(FULL.options, ratio=0.6)),
        replace(FULL, options=replace(FULL.options, method=hc.Importance())),
        replace(FULL, options=replace(FULL.options, repair=())),
        replace(FULL, options=replace(FULL.options, scoring=hc.Scoring())),
        replace(FULL, options=replace(FULL.options, baseline=0)),
    ]
    assert len({run.key for run in (FULL, *others)}) == 1 + len(others)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "prun"}, "Did you mean 'prune'"),
        ({"kind": None}, "names no kind of run"),
        ({"modle": "x"}, "has no part 'modle'; a run has kind, model"),
        ({"model": None}, "names no model"),
        ({"task": 3}, "is the name of a task, not 3"),
        ({"seed": 1.5}, r"seed is a whole number, not 1\.5"),
        ({"seed": True}, "seed is a whole number"),
        ({"options": []}, "names no method"),
        ({"options": {"ratio": 0.5}}, "names no method"),
        ({"options": {"method": {"step": 0.1}}}, "names no method"),
        ({"options": {"method": "randm"}}, "Did you mean 'random'"),
        ({"options": {"method": {"name": "random", "with": "layer"}}}, "no option 'with'"),
        ({"options": {"method": "random", "ratoi": 1}}, "Did you mean 'ratio'"),
        ({"options": {"method": "random", "ratio": "half"}}, "ratio"),
        ({"options": {"method": "random", "baseline": -1}}, "not negative"),
        ({"options": {"method": "random", "repair": [{"finetune": {"steps": "3"}}]}}, "steps"),
        ({"source": {"folder": "x"}}, "no option 'folder'"),
        ({"model_options": {"dtype": "int8"}}, "'int8' is none of"),
        ({"model": {"kind": "prune", "model": "a", "options": {}}}, "run.model.options names no"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_no_run_is_refused(change, said):
    with pytest.raises(UsageError, match=said):
        Run.read(plain(FULL) | change)


def test_options_of_another_kind_are_refused():
    with pytest.raises(UsageError, match="'prune' has options of Prune, not of TrainOptions"):
        Run("prune", "bert", options=hc.TrainOptions())
    for data in (None, [], "prune"):
        with pytest.raises(UsageError, match="names no kind of run"):
            Run.read(data)


def test_an_option_may_be_what_another_run_makes():
    near = Run("redundancy", "bert", options=RedundancyOptions())
    asked = replace(FULL, options=hc.Prune(method=hc.Cluster(), ratio=0.5)).to_plain()
    asked["options"]["method"]["redundancy"] = [near.to_plain(), "other.npz"]
    run = Run.read(asked)
    assert run.option_runs == (("method.redundancy.0", near),)
    assert run.inputs == (near,)
    assert Run.read(plain(run)) == run
    ready = run.with_products("folder", ["near.npz"])
    assert ready.options.method.redundancy == ["near.npz", "other.npz"]
    assert (ready.model, ready.inputs) == ("folder", ())
    other = replace(near, seed=1).to_plain()
    asked["options"]["method"]["redundancy"][0] = other
    assert Run.read(asked).key != run.key


def test_the_best_of_several_runs_is_a_model():
    best = replace(FULL, model=Best((FULL, replace(FULL, seed=4))))
    again = Run.read(plain(best))
    assert again == best
    assert again.inputs == best.model.runs
    assert again.key != replace(best, model=Best((FULL,))).key
    with pytest.raises(UsageError, match=r"run\.model\.best names no run"):
        Run.read(plain(best) | {"model": {"best": []}})


def test_a_key_follows_the_content_of_files_and_not_their_place(tmp_path, monkeypatch):
    keys = {}
    for place, text in (("a", "one"), ("b", "one"), ("c", "two")):
        folder = tmp_path / place
        (folder / "model").mkdir(parents=True)
        (folder / "model" / "config.json").write_text("{}")
        (folder / "model" / "model.safetensors").write_text(text)
        (folder / "model" / "README.md").write_text(place)
        keys[place] = replace(FULL, model=str(folder / "model")).key
    assert keys["a"] == keys["b"] != keys["c"]
    data = tmp_path / "data"
    data.mkdir()
    (data / "train.tsv").write_text("x")
    run = replace(FULL, source=Source(data=data))
    then = run.key
    (data / "train.tsv").write_text("y")
    assert replace(run).key != then
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mrpc").mkdir()  # a folder that happens to have the name of the task
    assert replace(FULL).key == FULL.key


def test_a_folder_beside_it_does_not_hide_a_shipped_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = {"kind": "evaluate", "model": "pocket", "task": "pocket-acceptability"}
    before = Run.read(run).key
    (tmp_path / "pocket").mkdir()
    (tmp_path / "pocket" / "record.json").write_text("{}")
    assert Run.read(run).key == before
    (tmp_path / "pocket" / "config.json").write_text("{}")
    assert Run.read(run).key != before
