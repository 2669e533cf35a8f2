"""Runs that start from other runs, and the table of kinds."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
import torch

import headcount as hc
from headcount.base.errors import UsageError
from headcount.likeness.options import DistanceOptions
from headcount.runs.execute import execute, plan
from headcount.runs.kinds import KINDS
from headcount.runs.kinds.bench import BenchOptions
from headcount.runs.kinds.evaluate import Evaluate
from headcount.runs.kinds.importance import ImportanceOptions
from headcount.runs.kinds.kind import RunContext, RunKind
from headcount.runs.kinds.probe import Probe
from headcount.runs.kinds.redundancy import RedundancyOptions
from headcount.runs.kinds.roles import RolesOptions
from headcount.runs.kinds.train import Train
from headcount.runs.kinds.transfer import TransferOptions
from headcount.runs.run import Run
from headcount.runs.subject import Subjects
from headcount.sensitivity.options import GradientOptions
from headcount.training import finetune as training
from runs.kinds.asking import FEW, READING, TASK


def test_every_kind_is_a_class_of_options_that_says_what_is_done():
    kinds = KINDS.loaded()
    assert all(issubclass(kind, RunKind) for kind in kinds.values())
    assert all(kind.execute is not RunKind.execute for kind in kinds.values())
    with pytest.raises(UsageError, match="no dry run of the kind 'probe'"):
        plan(Run("probe", "none", options=Probe()))


ONE = hc.TrainOptions(steps=1, batch_size=8, log_every=1)
DRAWS = {
    "train": (Train(training=ONE, rows=16), "last_loss"),
    "evaluate": (Evaluate(scoring=FEW), "rows"),
    "importance": (ImportanceOptions(gradient_options=GradientOptions(samples=4)), "loss"),
    "redundancy": (
        RedundancyOptions(
            input_options=READING, distance_options=DistanceOptions(distances=("js",))
        ),
        "rows",
    ),
    "roles": (RolesOptions(input_options=READING), "rows"),
    "transfer": (TransferOptions(finetuned="pocket", input_options=READING), "rows"),
    "prune": (hc.Prune(method=hc.Random(), ratio=0.5, scoring=FEW, baseline=0), "mask"),
    "bench": (BenchOptions(ratio=(0.5,), batch=1, length=4, repeats=6, onnx=False), "seed"),
    "probe": (Probe(), "seed"),
}
"""Kind of run -> options, and a part of its record that its seed decides."""


def test_every_kind_that_draws_is_seeded():
    """The harness draws nothing but the examples of a prompt."""
    assert {entry.name for entry in KINDS} - set(DRAWS) == {"lm-eval"}


@pytest.mark.parametrize("kind", DRAWS)
def test_another_seed_of_the_run_draws_something_else(kind, trained):
    options, drawn = DRAWS[kind]
    task = None if kind in ("redundancy", "roles", "transfer", "bench", "probe") else TASK
    model = "pocket" if kind in ("train", "transfer", "bench") else str(trained[1])
    run = Run(kind, model, task=task, options=options)
    first, other = (execute(replace(run, seed=seed)).record for seed in (0, 1))
    assert first.id != other.id
    assert first[drawn] != other[drawn]
    assert other.run.seed == 1 == other.run.to_plain()["seed"]


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


def test_a_run_that_was_made_from_other_weights_is_not_taken_for_this_one(trained, tmp_path):
    start = tmp_path / "start"
    shutil.copytree(trained[1], start)
    options = Train(training=hc.TrainOptions(steps=1, batch_size=8), rows=16)
    base = Run("train", str(start), task=TASK, options=options)
    cut = Run("prune", base, task=TASK, options=hc.Prune(
        method=hc.Random(), ratio=0.5, scoring=FEW, baseline=0))  # fmt: skip
    hc.run(cut, tmp_path / "a")
    model = hc.load(start, task="classification")
    with torch.no_grad():
        model.classifier.bias.add_(1)
    model.save_pretrained(start)
    with pytest.raises(UsageError, match="weights"):
        hc.run(cut, tmp_path / "b")


def test_runs_of_one_subject_score_the_full_model_once(tmp_path, monkeypatch):
    trained: list[int] = []
    whole = training.finetune
    monkeypatch.setattr(
        training, "finetune", lambda *a, **how: (trained.append(0), whole(*a, **how))[1]
    )
    repair = (hc.Finetune(steps=2, batch_size=8),)
    runs = [
        Run("prune", "pocket", task=TASK, seed=1, options=hc.Prune(
            method=hc.Random(), ratio=ratio, repair=repair, scoring=FEW, baseline=0))
        for ratio in (0.25, 0.5)
    ]  # fmt: skip
    subjects = Subjects()
    first, second = (execute(run, RunContext(subjects=subjects)).record for run in runs)
    assert len(trained) == 3  # the full model, and two cuts
    assert first["scores"]["before"] == second["scores"]["before"]
    alone = execute(runs[1]).record
    for part in ("before", "after"):
        assert second["scores"][part]["score"] == alone["scores"][part]["score"]
    for name in ("mask", "budget", "rows", "identity"):
        assert second.to_json()[name] == alone.to_json()[name]
    assert second["scores"]["difference"] == alone["scores"]["difference"]
    assert (second["budget"]["steps"], second["repair"][0]["steps"]) == (2, 2)
