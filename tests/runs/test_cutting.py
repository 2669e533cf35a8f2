"""Methods that train gates, all the way through prune and curve."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

import headcount as hc
from headcount.base.errors import UsageError
from headcount.learned.trace import load_trace
from headcount.models.find import layout
from headcount.models.load import load
from headcount.pruning.methods import Decision
from headcount.runs.budget import Budget, together
from headcount.runs.cutting import PruningRun
from headcount.runs.subject import make_subject
from headcount.training.evaluate import evaluate
from headcount.training.options import TrainOptions
from headcount.training.scoring import Scoring
from runs.flat import curve, prune

SHORT = TrainOptions(steps=8, batch_size=16, learning_rate=1e-3)


@pytest.mark.parametrize("finetune", [False, True], ids=["alone", "trained-further"])
def test_prune_trains_removes_scores_and_writes(model, task, tokenizer, tmp_path, finetune):
    found = prune(
        model, "straight-through", 0.5, task=task, tokenizer=tokenizer, out=tmp_path / "small",
        learning=SHORT, finetune=replace(SHORT, steps=3) if finetune else False, bootstrap=0,
        baseline=1, options={"gate_lr": 0.3}, device="cpu",
    )  # fmt: skip
    assert len(found.mask) == 6
    assert sorted(path.name for path in tmp_path.iterdir()) == ["small"]  # no work folder left
    record = json.loads((tmp_path / "small" / "record.json").read_text())
    assert record["learned"]["route"]["asked"] == 6
    assert record["budget"]["steps"] == 8 + 3 * finetune
    # 96 rows, 6 steps an epoch
    assert record["budget"]["examples"] == 8 * 16 + 3 * 16 * finetune
    assert record["scores"]["random"]["budget"]["steps"] == record["budget"]["steps"]
    assert [step["steps"] for step in record["repair"]] == [3] * finetune
    assert load_trace(tmp_path / "small").about["route"] == record["learned"]["route"]
    small = load(tmp_path / "small")
    assert layout(small)["encoder"].heads == found.mask.counts()["encoder"]
    after = evaluate(small, task, tokenizer=tokenizer, scoring=Scoring(bootstrap=0))
    assert record["scores"]["after"]["score"] == after.score


def test_the_weights_of_the_cut_are_those_trained_with_the_gates(model, task, tokenizer):
    how = {"task": task, "tokenizer": tokenizer, "learning": SHORT, "baseline": 0, "bootstrap": 0}
    found = prune(model, "subset", 0.5, device="cpu", **how)
    name = "bert.embeddings.word_embeddings.weight"
    assert not torch.equal(found.model.state_dict()[name], model.state_dict()[name])
    assert found.trace is not None
    again = prune(model, "subset", 0.5, device="cpu", **how)
    assert torch.equal(found.model.state_dict()[name], again.model.state_dict()[name])


@pytest.mark.parametrize("method", ["straight-through", "hard-concrete", "subset"])
def test_the_score_over_the_run_is_in_the_trace(model, task, tokenizer, method):
    options = {"score_points": 2, "score_rows": 24}
    found = prune(
        model, method, 0.5, task=task, tokenizer=tokenizer, learning=SHORT, baseline=0, bootstrap=0,
        options=options, device="cpu",
    )  # fmt: skip
    assert found.trace is not None
    points = [point for point in found.trace.scores if "score" in point]
    assert [(point["step"], point["n"]) for point in points] == [(0, 24), (4, 24), (8, 24)]
    assert points[-1]["open"] == 6


def test_a_curve_gives_every_method_one_training(model, task, tokenizer, tmp_path):
    found = curve(
        model, task, ["random", "subset"], [0.5], seeds=2, out=tmp_path, tokenizer=tokenizer,
        finetune=SHORT, bootstrap=10, device="cpu",
    )  # fmt: skip
    assert [(p.method, p.kept) for p in found.points] == [("random", 6)] * 2 + [("subset", 6)] * 2
    before = found.to_json()["points"]
    again = curve(
        model, task, ["random", "subset"], [0.5], seeds=2, out=tmp_path, tokenizer=tokenizer,
        finetune=SHORT, bootstrap=10, device="cpu",
    )  # fmt: skip
    assert again.to_json()["points"] == before


def test_the_record_of_a_training_says_the_seed_it_had(model, task, tokenizer):
    how = {"task": task, "tokenizer": tokenizer, "baseline": 0, "bootstrap": 0, "device": "cpu"}
    short = replace(SHORT, steps=1)
    record = prune(model, "random", 0.5, seed=3, finetune=short, **how).record
    assert record["seed"] == 3
    assert record["repair"][0]["options"] == replace(short, seed=3).to_json()


def test_what_importance_looks_at_is_counted(model, task, tokenizer):
    how = {"task": task, "tokenizer": tokenizer, "samples": 20, "bootstrap": 0, "baseline": 0}
    record = prune(model, "importance", 0.5, **how).record
    assert record["budget"] == {
        "epochs": 0.0, "examples": 0, "steps": 0, "examples_measured": 20,
    }  # fmt: skip
    again = prune(model, "importance", 0.5, options={"step": 0.25}, recover=True, **how).record
    assert again["budget"]["examples_measured"] > 40  # two estimates, and recovery
    assert prune(model, "random", 0.5, **how).record["budget"]["examples_measured"] == 0


def test_a_method_that_has_looked_is_known_by_its_options(model, task, tokenizer):
    subject, prepared = make_subject(model, task, tokenizer=tokenizer), {}

    def prepare(method, calibration=hc.Calibration(samples=8), seed=0):  # noqa: B008
        asked = hc.Prune(method=method, ratio=0.5, calibration=calibration)
        return PruningRun(subject=subject, options=asked, seed=seed, prepared=prepared).prepare()

    first = prepare(hc.Importance())
    assert prepare(hc.Importance()) is first
    others = [
        prepare(hc.Importance(normalize="l2")),
        prepare(hc.Importance(), seed=1),
        prepare(hc.Importance(), hc.Calibration(samples=9)),
        prepare(hc.Importance(), hc.Calibration(samples=8, rows=["the dog"])),
    ]
    assert len({id(each) for each in (first, *others)}) == 5
    assert len(prepared) == 4  # other inputs take the place of those before


def test_one_training_as_long_as_two():
    assert together(SHORT, None) is SHORT
    assert together(SHORT, replace(SHORT, steps=4)).steps == 12
    assert together(TrainOptions(epochs=2), TrainOptions(epochs=1)).epochs == 3
    budget = Budget()
    budget.train(examples=30, steps=3, rows=20)
    assert budget.summary().epochs == 1.5


def test_refusals(model, task, tokenizer):
    how = {"task": task, "tokenizer": tokenizer, "device": "cpu"}
    with pytest.raises(UsageError, match="trains gates on a task: pass --task"):
        prune(model, "subset", 0.5)
    with pytest.raises(UsageError, match="'recover' could work towards: leave it out"):
        prune(model, "subset", 0.5, recover=True, **how)
    with pytest.raises(UsageError, match="run headcount train first"):
        prune(model, "hard-concrete", 0.5, fresh=True, **how)
    with pytest.raises(UsageError, match="pass --finetune"):
        curve(model, task, ["subset"], [0.5], tokenizer=tokenizer)
    with pytest.raises(UsageError, match="needs a ratio"):
        prune(model, "subset", **how)
    with pytest.raises(UsageError, match="mu must be above 0"):
        prune(model, "straight-through", 0.5, options={"mu": -1.0}, **how)
    with pytest.raises(UsageError, match="learning rate must be above 0"):
        prune(model, "straight-through", 0.5, options={"gate_lr": 0.0}, **how)
    with pytest.raises(UsageError, match="Did you mean 'coarse'"):
        prune(model, "straight-through", 0.5, options={"coars": "relu"}, **how)


@pytest.mark.parametrize(
    "repair",
    [(), (hc.Recover(feed_forward=True, target="stream"),), (hc.Finetune(steps=2),)],
    ids=["none", "recover", "finetune"],
)
def test_only_a_model_opened_here_shares_weights_and_stays_as_it_is(model, task, tokenizer, repair):
    whole = {name: value.clone() for name, value in model.named_parameters()}
    mask = hc.Mask.full(layout(model)).drop([hc.Head("encoder", 1, 0)])
    for by_name in (True, False):
        subject = replace(make_subject(model, task, tokenizer=tokenizer), by_name=by_name)
        options = hc.Prune(method="random", ratio=0.5, repair=repair)
        small, _ = PruningRun(subject=subject, options=options).cut(Decision(mask=mask))
        shared = {id(value) for value in small.parameters()} & {id(p) for p in model.parameters()}
        trains = any(isinstance(step, hc.Finetune) for step in repair)
        assert bool(shared) is (by_name and not trains)
        assert all(torch.equal(value, whole[name]) for name, value in model.named_parameters())


def test_calibration_is_counted_in_tokens_and_too_few_are_said(model, task, tokenizer):
    subject = make_subject(model, task, tokenizer=tokenizer)
    notes = []

    def rows(**calibration):
        options = hc.Prune(
            method=hc.Importance(), ratio=0.5, calibration=hc.Calibration(**calibration)
        )
        run = PruningRun(subject=subject, options=options, note=notes.append)
        return run.rows("calibration")

    some = rows(tokens=60)
    longest = int(rows(samples=10_000).lengths.max())
    assert 60 <= some.lengths.sum() < 60 + longest
    assert notes == []
    every = rows(tokens=10**6)
    assert len(every) == len(rows(samples=10_000))
    (note,) = notes
    assert f"have {every.lengths.sum():,} tokens, not 1,000,000: there are no more" in note
    # texts that were given are taken in their order
    texts = [" ".join(task.load("train").texts[0][n : n + 2]) for n in range(8)]
    whole = subject.given(hc.Calibration(rows=texts), 128)
    part = subject.given(hc.Calibration(rows=texts, tokens=int(whole.lengths[:3].sum())), 128)
    assert part.columns["input_ids"] == whole.columns["input_ids"][:3]
    batches = [{"input_ids": torch.ones(2, 5, dtype=torch.long)}]
    with pytest.raises(UsageError, match="counted in rows, not in batches"):
        subject.given(hc.Calibration(rows=batches, tokens=5), 128)


def test_a_prune_on_tokens_is_recorded_as_one(model, task, tokenizer):
    found = hc.prune(
        model, "importance", 0.5, task=task, tokenizer=tokenizer, repair="recover",
        calibration=hc.Calibration(tokens=80), baseline=0, scoring=Scoring(bootstrap=0),
    )  # fmt: skip
    assert found.record["samples"] is None
    assert found.record["repair"][0]["layers"][0]["tokens"] < 80 + 20


def test_linear_paths_are_paid_with_heads(model, task, tokenizer):
    """12 heads of 8 x 32 weights in four matrices each; a path of rank 4 has 4 x 64 a layer."""
    subject, notes = make_subject(model, task, tokenizer=tokenizer), []
    layers, weights = len(subject.layout.stacks[0].heads), 4 * 8 * 32

    def kept(rank, ratio=0.5):
        options = hc.Prune(method=hc.Random(), ratio=ratio, repair=(hc.Recover(path_rank=rank),))
        run = PruningRun(subject=subject, options=options, note=notes.append)
        return len(run.decide().mask)

    assert hc.Recover(path_rank=4).heads_paid(model) == -(-layers * 4 * 64 // weights)
    # at half the width it is one full matrix, and no more from there on
    for rank in (16, 32, 99):
        assert hc.Recover(path_rank=rank).heads_paid(model) == -(-layers * 32 * 32 // weights)
    whole = len(subject.layout)
    assert kept(0) == whole // 2
    assert notes == []
    paid = hc.Recover(path_rank=4).heads_paid(model)
    assert kept(4) == whole // 2 - paid
    assert f"count as {paid} of {whole // 2} heads" in notes[0]
    with pytest.raises(UsageError, match="take a lower --path-rank or ratio"):
        kept(16, 0.95)
