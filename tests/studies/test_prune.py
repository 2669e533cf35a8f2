from __future__ import annotations

import json

import pytest
import torch

import headcount as hc
from headcount.errors import UsageError
from headcount.models.find import layout
from headcount.models.probe import probe_inputs
from headcount.studies.prune import prune
from headcount.training.evaluate import evaluate
from models.zoo import build


def test_the_record_says_what_was_done(model, task, tokenizer, tmp_path):
    found = prune(
        model, "importance", 0.5, task=task, tokenizer=tokenizer, out=tmp_path / "small",
        options={"normalize": "l2"}, samples=20, draws=20,
    )  # fmt: skip
    record = json.loads((tmp_path / "small" / "record.json").read_text())
    assert record == json.loads(json.dumps(found.record))
    assert record["options"] == {"normalize": "l2"}
    assert record["heads"] == {"before": 12, "after": 6, "kept": found.mask.pattern}
    assert record["scores"]["before"]["score"] == evaluate(model, task, tokenizer=tokenizer).score
    assert record["scores"]["after"]["score"] == pytest.approx(
        evaluate(model, task, found.mask, tokenizer=tokenizer).score
    )
    assert layout(found.model)["encoder"].heads == found.mask.counts()["encoder"]


def test_random_cuts_are_repaired_alike(model, task, tokenizer):
    with torch.no_grad():  # fresh weights answer the same to everything, whichever heads are gone
        for weight in model.bert.encoder.parameters():
            weight.mul_(8 if weight.ndim == 2 else 1)
    how = {"task": task, "tokenizer": tokenizer, "samples": 40, "draws": 0, "baseline": 2}
    plain = prune(model, "random", 0.75, **how).record["scores"]
    solved = prune(model, "random", 0.75, recover=True, **how).record["scores"]
    assert plain["random"]["kept"] == solved["random"]["kept"]
    assert plain["random"]["scores"] != solved["random"]["scores"]


def test_no_task_no_scores():
    found = hc.prune(build("t5"), "pattern", options={"keep": "8,9,10"}, baseline=5)
    assert "scores" not in found.record
    assert [sum(counts) for counts in found.mask.counts().values()] == [8, 9, 10]


def test_inputs_that_are_given():
    batches = [probe_inputs(build("vit"), batch=4, seed=seed) for seed in range(6)]
    found = prune(build("vit"), "cluster", 0.5, recover=True, inputs=batches)
    assert found.record["recovered"]
    assert len(found.mask) == 8


def test_refusals(model, task, tmp_path):
    with pytest.raises(UsageError, match="not loaded from a folder"):
        prune(model, "random", 0.5, task=task)
    with pytest.raises(UsageError, match="between 0 and 1"):
        prune(model, "cluster", -1)
    with pytest.raises(UsageError, match="needs a task"):
        prune(model, "random", 0.5, finetune=True)
    with pytest.raises(UsageError, match="Recovery needs inputs"):
        prune(model, "random", 0.5, recover=True)
    (tmp_path / "x").write_text("")
    with pytest.raises(UsageError, match="new or empty"):
        prune(model, "random", 0.5, out=tmp_path)
