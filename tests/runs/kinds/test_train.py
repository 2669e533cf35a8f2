from __future__ import annotations

import json

import pytest
import torch

import headcount as hc
from headcount.runs.kinds.train import Train
from headcount.runs.run import Run
from runs.kinds.asking import TASK


def test_training_leaves_a_model_and_its_record(trained):
    run, folder, record = trained
    assert (record["steps"], record["rows_trained"]) == (2, 40)
    used = record["rows"]["training"]
    assert (used["split"], used["n"], used["seed"]) == ("train", 40, 0)  # not all of the split
    again = hc.load_record(folder)
    assert again.run == run
    assert again.to_json() == json.loads(json.dumps(record.to_json()))
    assert hc.load(folder, task="classification").num_labels == 2


@pytest.mark.parametrize("scratch", [False, True])
def test_the_dtype_that_was_asked_is_the_one_that_was_trained(tmp_path, scratch):
    training = hc.TrainOptions(steps=1, batch_size=4, learning_rate=3e-4)
    options = Train(training=training, rows=8, from_scratch=scratch)
    kinds = {}
    for name in ("float32", "bfloat16", "float64"):
        model_options = hc.ModelOptions(dtype=name)
        record = hc.run(
            Run("train", "pocket", task=TASK, options=options, model_options=model_options),
            tmp_path / name,
        )
        assert record.run.model_options.dtype == name
        kinds[name] = {weight.dtype for weight in hc.load(tmp_path / name).parameters()}
    assert kinds == {name: {getattr(torch, name)} for name in kinds}


def test_a_dtype_that_cannot_be_trained_is_refused(tmp_path):
    training = hc.TrainOptions(steps=1, batch_size=4)
    run = Run(
        "train", "pocket", task=TASK, options=Train(training=training, rows=8),
        model_options=hc.ModelOptions(dtype="float16"),
    )  # fmt: skip
    with pytest.raises(hc.HeadcountError, match=r"float16 cannot be trained.*--precision fp16"):
        hc.run(run, tmp_path / "run")
