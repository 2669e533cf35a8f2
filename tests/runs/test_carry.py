"""Every kind of run is carried out from plain data, and again from its record."""

from __future__ import annotations

import json
import shutil

import pytest
import torch

import headcount as hc
from headcount.errors import UsageError
from headcount.likeness.options import Likening
from headcount.runs import cutting
from headcount.runs.carry import carry
from headcount.runs.kinds import Bench, Evaluate, Importance, Redundancy, Train, Transfer
from headcount.runs.record import Record
from headcount.runs.run import Run
from headcount.runs.subject import Subjects
from headcount.sensitivity.options import Measuring
from headcount.tasks.reading import Reading

TASK = "pocket-acceptability"
FEW = hc.Scoring(limit=20, draws=5)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run that others start from, and the folder it was carried out in."""
    training = hc.TrainOptions(steps=2, batch_size=8, learning_rate=3e-4)
    run = Run("train", "pocket", task=TASK, options=Train(training=training, rows=40))
    folder = tmp_path_factory.mktemp("trained") / "run"
    return run, folder, hc.run(run, folder)


def test_training_leaves_a_model_and_its_record(trained):
    run, folder, record = trained
    assert (record["steps"], record["rows_trained"]) == (2, 40)
    assert record["rows"]["trained"]["split"] == "train"
    again = hc.load_record(folder)
    assert again.run == run
    assert again.to_json() == json.loads(json.dumps(record.to_json()))
    assert hc.load(folder, head="sequence-classification").num_labels == 2


def kinds(model: str) -> dict[str, Run]:
    reading, likening = Reading(random=3, max_length=12), Likening(distances=("js",))
    return {
        "evaluate": Run("evaluate", model, task=TASK,
                        options=Evaluate(scoring=FEW, masks=("444444",))),
        "importance": Run("importance", model, task=TASK,
                          options=Importance(measuring=Measuring(samples=8))),
        "redundancy": Run("redundancy", model,
                          options=Redundancy(reading=reading, likening=likening)),
        "transfer": Run("transfer", "pocket", options=Transfer(finetuned=model, reading=reading)),
        "prune": Run("prune", model, task=TASK, seed=3,
                     options=hc.Prune(method=hc.Random(), ratio=0.5, scoring=FEW, baseline=1)),
        "gated": Run("prune", model, task=TASK, options=hc.Prune(
            method=hc.Importance(), ratio=0.5, scoring=FEW, baseline=0, gated=True,
            looking=hc.Looking(samples=8))),
    }  # fmt: skip


def plain(record: Record) -> dict:
    """What came out, without what a clock says."""
    return json.loads(json.dumps(record.to_json(), default=str), parse_constant=str) | {
        "seconds": 0, "scores": without_seconds(record.to_json().get("scores")),
        "made": None, "drift": None,
    }  # fmt: skip


def without_seconds(value):
    if isinstance(value, dict):
        return {name: without_seconds(each) for name, each in value.items() if name != "seconds"}
    return [without_seconds(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("kind", kinds(""))
def test_a_record_asked_again_gives_the_same(trained, kind):
    run = kinds(str(trained[1]))[kind]
    first = hc.run(run)
    record = Record.from_json(json.loads(json.dumps(first.to_json(), default=str)))
    assert record.run == run
    again = hc.run(record.run)
    assert again.id == first.id
    left, right = (plain(each) for each in (first, again))
    assert without_seconds(left) == without_seconds(right)


def test_a_run_that_starts_from_another_makes_it_once(trained, tmp_path):
    base = trained[0]
    cut = Run("prune", base, task=TASK, options=hc.Prune(
        method=hc.Random(), ratio=0.5, scoring=FEW, baseline=0))  # fmt: skip
    with pytest.raises(UsageError, match="needs a folder"):
        hc.run(cut)
    first = hc.run(cut, tmp_path / "a")
    made = tmp_path / "runs" / base.key
    before = (made / "model.safetensors").stat().st_mtime_ns
    other = hc.run(Run.read(cut.to_plain()), tmp_path / "b")
    assert (made / "model.safetensors").stat().st_mtime_ns == before
    assert first["mask"] == other["mask"]
    assert first["model"] == str(made)


def test_bench_is_a_run():
    options = Bench(ratio=(0.5,), batch=1, length=8, repeats=6, onnx=False)
    found = carry(Run("bench", "pocket", options=options))
    assert [row["name"] for row in found.record["timings"]] == [
        row.name for row in found.value.rows
    ]


def test_a_run_that_was_made_from_other_weights_is_not_taken_for_this_one(trained, tmp_path):
    start = tmp_path / "start"
    shutil.copytree(trained[1], start)
    options = Train(training=hc.TrainOptions(steps=1, batch_size=8), rows=16)
    base = Run("train", str(start), task=TASK, options=options)
    cut = Run("prune", base, task=TASK, options=hc.Prune(
        method=hc.Random(), ratio=0.5, scoring=FEW, baseline=0))  # fmt: skip
    hc.run(cut, tmp_path / "a")
    model = hc.load(start, head="sequence-classification")
    with torch.no_grad():
        model.classifier.bias.add_(1)
    model.save_pretrained(start)
    with pytest.raises(UsageError, match="weights"):
        hc.run(cut, tmp_path / "b")


def test_runs_of_one_subject_score_the_full_model_once(tmp_path, monkeypatch):
    trained: list[int] = []
    whole = cutting.finetune
    monkeypatch.setattr(
        cutting, "finetune", lambda *a, **how: (trained.append(0), whole(*a, **how))[1]
    )
    repair = hc.Repair(train=hc.TrainOptions(steps=2, batch_size=8))
    runs = [
        Run("prune", "pocket", task=TASK, seed=1, options=hc.Prune(
            method=hc.Random(), ratio=ratio, repair=repair, scoring=FEW, baseline=0))
        for ratio in (0.25, 0.5)
    ]  # fmt: skip
    subjects = Subjects()
    first, second = (carry(run, subjects=subjects).record for run in runs)
    assert len(trained) == 3  # the full model, and two cuts
    assert first["scores"]["before"] == second["scores"]["before"]
    alone = carry(runs[1]).record
    for part in ("before", "after"):
        assert second["scores"][part]["score"] == alone["scores"][part]["score"]
    for name in ("mask", "budget", "rows", "identity"):
        assert second.to_json()[name] == alone.to_json()[name]
    assert second["scores"]["difference"] == alone["scores"]["difference"]
    assert (second["budget"]["steps"], second["trained"]["steps"]) == (2, 2)
