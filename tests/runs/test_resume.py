"""Runs that were killed, done before, or are under way in another process."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch

from headcount.base.errors import UsageError
from headcount.training.checkpoints import Saver
from headcount.training.finetune import finetune
from headcount.training.options import TrainOptions
from runs.flat import compare, curve, prune, sweep

SHORT = TrainOptions(steps=6, batch_size=16, learning_rate=1e-3, save_every=2)


@pytest.fixture
def asked(model, task, tokenizer):
    how = {"task": task, "tokenizer": tokenizer, "bootstrap": 5, "baseline": 1, "device": "cpu"}
    return {"model": model, "ratio": 0.5, **how}


@contextmanager
def killed(monkeypatch, when):
    """The training is killed once the checkpoint of this step is written."""
    plain = Saver.on_save

    def save(self, args, state, control, **more):
        plain(self, args, state, control, **more)
        if state.global_step == when:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Saver, "on_save", save)
        with pytest.raises(KeyboardInterrupt):
            yield


def weights(found):
    return {name: value.clone() for name, value in found.model.state_dict().items()}


@pytest.mark.parametrize("method", ["random", "straight-through"])
def test_training_after_the_cut_goes_on_where_it_was(asked, tmp_path, monkeypatch, method):
    how = asked | {"method": method, "finetune": SHORT, "learning": replace(SHORT, steps=3)}
    plain = prune(**how, out=tmp_path / "plain")
    with killed(monkeypatch, 4):
        prune(**how, out=tmp_path / "killed")
    assert not (tmp_path / "killed").exists()
    found = prune(**how, out=tmp_path / "killed")
    assert found.record["repair"][0]["resumed_from"] == 4
    for name, value in weights(plain).items():
        assert torch.equal(found.model.state_dict()[name], value), name
    assert found.record["scores"]["after"]["score"] == plain.record["scores"]["after"]["score"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["killed", "plain"]


def test_what_is_left_of_another_question_is_refused_or_overwritten(asked, tmp_path, monkeypatch):
    how = asked | {"method": "random", "out": tmp_path / "a"}
    with killed(monkeypatch, 2):
        prune(**how, finetune=SHORT)
    other = replace(SHORT, learning_rate=5e-4)
    with pytest.raises(UsageError, match=r"learning_rate was 0\.001, now 0\.0005.*--overwrite"):
        prune(**how, finetune=other)
    found = prune(**how, finetune=other, overwrite=True)
    assert found.record["repair"][0]["resumed_from"] is None
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_what_is_done_is_given_again_and_another_question_refused(asked, tmp_path, monkeypatch):
    how = asked | {"method": "subset", "learning": SHORT, "out": tmp_path / "a"}
    first = prune(**how)
    said: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr("headcount.runs.cutting.PruningRun.prepare", lambda *_: pytest.fail("again"))
        again = prune(**how, note=said.append)
    assert (again.mask, again.record) == (
        first.mask,
        json.loads(json.dumps(first.record.to_json())),
    )
    assert again.trace is not None
    assert "nothing is computed again" in said[-1]
    for name, value in weights(first).items():
        assert torch.equal(again.model.state_dict()[name], value)
    with pytest.raises(UsageError, match=r"ratio was 0\.5, now 0\.25.*new or empty"):
        prune(**how | {"ratio": 0.25})
    small = prune(**how | {"ratio": 0.25}, overwrite=True)
    assert len(small.mask) == 9
    assert json.loads((tmp_path / "a" / "record.json").read_text())["ratio"] == 0.25
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_folder_of_something_else_is_never_overwritten(asked, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match="new or empty"):
        prune(**asked, method="random", out=tmp_path, overwrite=True)
    assert (tmp_path / "thesis.txt").is_file()


def test_a_second_prune_in_the_same_folder_is_refused(asked, tmp_path):
    refused: list[str] = []
    how = asked | {"method": "random", "out": tmp_path / "a"}

    def second(_):
        with pytest.raises(UsageError, match="is being worked on by process") as error:
            prune(**how)
        refused.append(str(error.value))

    prune(**how, report=second)
    assert refused
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("study", ["curve", "compare", "sweep"])
def test_a_second_study_in_the_same_folder_is_refused(model, task, tokenizer, tmp_path, study):
    refused: list[str] = []
    how = {
        "tokenizer": tokenizer,
        "out": tmp_path / "a",
        "seeds": 1,
        "bootstrap": 5,
        "device": "cpu",
    }
    train = TrainOptions(steps=1, batch_size=8)
    call = {
        "curve": lambda **more: curve(model, task, ["random"], [0.5], **how, **more),
        "compare": lambda **more: compare(model, task, ["random"], train=train, **how, **more),
        "sweep": lambda **more: sweep(model, task, "mu", [0.1, 0.2], train=train, **how, **more),
    }[study]

    def second(*_):
        with pytest.raises(UsageError, match="is being worked on by process") as error:
            call()
        refused.append(str(error.value))

    call(progress=second)
    assert refused
    assert not (tmp_path / "a" / ".lock").exists()
    call()


def test_a_killed_point_of_a_curve_goes_on(model, task, tokenizer, tmp_path, monkeypatch):
    how = {"tokenizer": tokenizer, "finetune": SHORT, "seeds": 1, "bootstrap": 5, "device": "cpu"}
    plain = curve(model, task, ["random"], [0.5], **how)
    with killed(monkeypatch, 4):
        curve(model, task, ["random"], [0.5], out=tmp_path / "c", **how)
    steps: list[int | None] = []

    def counting(*args, **more):
        found = finetune(*args, **more)
        steps.append(found.resumed_from)
        return found

    monkeypatch.setattr("headcount.training.finetune.finetune", counting)
    found = curve(model, task, ["random"], [0.5], out=tmp_path / "c", **how)
    assert steps == [4]
    assert found.points == plain.points
    names = {path.name for path in (tmp_path / "c").iterdir()}
    assert names == {"claims", "full.json", "runs", "studies", "work"}
    (run,) = (tmp_path / "c" / "runs").iterdir()  # no work folder left
    assert {path.name for path in run.iterdir()} == {"predictions.json", "record.json"}
