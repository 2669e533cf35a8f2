"""A study never goes on with something else: every field of its identity, for every study."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import headcount as hc
from headcount.base.errors import UsageError
from headcount.base.files import write_json
from headcount.pruning.methods import METHODS, make_method
from headcount.runs.identity import read_sealed, seal
from headcount.runs.prune import identity_of
from headcount.runs.record import id_of
from headcount.runs.subject import make_subject
from headcount.tasks import Examples
from headcount.tasks.encoding import encode_texts
from headcount.training.options import TrainOptions
from runs import flat
from runs.options import with_another
from training.conftest import pets, tiny

TRAIN = TrainOptions(steps=1, batch_size=8)


def curve(model, task, *, train=TRAIN, options=None, **how):
    return flat.curve(model, task, ["random"], [0.5], seeds=1, options=options, **how)


def compare(model, task, *, ratio=0.5, options=None, train=TRAIN, **how):
    how |= {"ratio": ratio, "options": options, "train": train}
    return flat.compare(model, task, ["random"], seeds=1, **how)


def sweep(model, task, *, over="mu", train=TRAIN, options=None, **how):
    own = (options or {}).get("straight-through", {})
    return flat.sweep(model, task, over, [0.1, 0.2], seeds=1, train=train, options=own, **how)


STUDIES = {"curve": curve, "compare": compare, "sweep": sweep}


@pytest.fixture(scope="module")
def begun(tokenizer, tmp_path_factory):
    """Study -> (its folder, what it was asked)."""
    found = {}
    for name, study in STUDIES.items():
        asked = {"model": tiny(tokenizer), "task": pets(rows=24), "tokenizer": tokenizer}
        asked |= {"bootstrap": 5, "device": "cpu"}
        folder = tmp_path_factory.mktemp(name)
        study(**asked, out=folder)
        found[name] = folder, asked
    return found


def rows(task, split, change):
    """The task with other rows in one split."""

    def load(name):
        examples = task.load(name)
        return change(examples) if name == split else examples

    return replace(task, loader=load)


def other_text(examples):
    return Examples((["a cat", *examples.texts[0][1:]],), examples.labels)


def other_label(examples):
    labels = np.array(examples.labels)
    labels[0] = 1 - labels[0]
    return Examples(examples.texts, labels)


def moved(asked):
    model = copy.deepcopy(asked["model"])
    with torch.no_grad():
        model.classifier.bias[0] += 1e-6
    return {"model": model}


def cut_left(asked):
    tokenizer = copy.deepcopy(asked["tokenizer"])
    tokenizer.truncation_side = "left"
    return {"tokenizer": tokenizer}


def given_inputs(asked):
    return {"rows": encode_texts(["the king sees a cat"], asked["tokenizer"], max_length=16)}


CHANGES = {
    "weights": moved,
    "config.hidden_act": lambda asked: {"model": tiny(asked["tokenizer"], hidden_act="relu")},
    "tokenizer": cut_left,
    "scored": lambda asked: {"task": rows(asked["task"], "dev", other_text)},
    "scored ": lambda asked: {"task": rows(asked["task"], "dev", other_label)},
    "rows": lambda asked: {"task": rows(asked["task"], "train", other_text)},
    "rows ": lambda asked: {"task": rows(asked["task"], "train", lambda rows: rows.take(range(9)))},
    "labels": lambda asked: {"task": replace(asked["task"], labels=("dog", "cat"))},
    "metric": lambda asked: {"task": replace(asked["task"], metrics=("matthews", "accuracy"))},
    "task": lambda asked: {"task": replace(asked["task"], name="zoo")},
    "split": lambda asked: {"split": "train"},
    "limit": lambda asked: {"limit": 9},
    "seed": lambda asked: {"seed": 9},
    "bootstrap": lambda asked: {"bootstrap": 6},
    "samples": lambda asked: {"samples": 9},
    "max_length": lambda asked: {"max_length": 16},
    "calibration": given_inputs,
}
OWN = {
    "curve": {
        "repair": {"recover": True},
        "repair ": {"finetune": TRAIN},
        "random.within": {"options": {"random": {"within": "layer"}}},
    },
    "compare": {
        "ratio": {"ratio": 0.25},
        "finetune.learning_rate": {"train": replace(TRAIN, learning_rate=1e-3)},
        "random.within": {"options": {"random": {"within": "layer"}}},
    },
    "sweep": {
        "over": {"over": "settle"},
        "finetune.steps": {"train": replace(TRAIN, steps=2)},
        "straight-through.gate_lr": {"options": {"straight-through": {"gate_lr": 0.2}}},
    },
}
UNASKED = [("sweep", "samples"), ("sweep", "calibration")]
"""Gates are trained on the train split: a sweep looks at nothing else."""
EVERY = [(study, name, change) for study in STUDIES for name, change in CHANGES.items()]
EVERY = [each for each in EVERY if each[:2] not in UNASKED]
EVERY += [
    (study, name, lambda _, own=own: own) for study in OWN for name, own in OWN[study].items()
]


@pytest.mark.parametrize(
    ("study", "name", "change"), EVERY, ids=[f"{study}-{name}" for study, name, _ in EVERY]
)
def test_another_question_is_refused_with_the_difference(begun, study, name, change):
    folder, asked = begun[study]
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    said = rf"{name.strip().replace('.', '[.]')} was .+, now .+"
    with pytest.raises(UsageError, match=said):
        STUDIES[study](**asked | change(asked), out=folder)
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert after == before


@pytest.mark.parametrize("study", STUDIES)
def test_the_same_question_goes_on_and_other_versions_are_told(begun, study, caplog):
    folder, asked = begun[study]
    again = asked | {"model": tiny(asked["tokenizer"])}  # the same, made anew
    STUDIES[study](**again, out=folder)
    assert caplog.messages == []
    path = folder / "studies" / f"{study}.json"
    kept = path.read_text()
    asked_for = json.loads(kept)
    versions = asked_for["about"]["versions"]
    assert set(versions) >= {"headcount", "torch", "transformers"}
    versions["torch"] = "1.0"
    try:
        path.write_text(json.dumps(asked_for))
        STUDIES[study](**again, out=folder)
    finally:
        path.write_text(kept)
    assert "versions.torch was 1.0, now" in caplog.text


FREE = {"repair.1.save_every", "repair.1.save_minutes",
        "learning.save_every", "learning.save_minutes"}  # fmt: skip
"""How often a training saves is nothing that a result depends on."""
NAMED = {"pattern": {"keep": "1x4"}, "layers": {"empty": "0"}}


@pytest.mark.parametrize("method", [entry.name for entry in METHODS])
def test_a_cut_depends_on_every_option(model, task, tokenizer, method, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").write_text("the dog\n")
    subject = make_subject(model, task, tokenizer=tokenizer)
    repair = (hc.Recover(), hc.Finetune.of(TRAIN))
    made = make_method(method, NAMED.get(method))
    learning = TRAIN if made.needs == "training" else None
    options = hc.Prune(method=made, ratio=0.5, repair=repair, learning=learning)
    first = id_of(identity_of(subject, options, 0))
    assert first != id_of(identity_of(subject, options, 1))
    for place, other in with_another(options):
        same = first == id_of(identity_of(subject, other, 0))
        assert same == (place in FREE or (place == "learning" and learning is None)), place


def test_a_result_is_read_for_its_question_alone(tmp_path):
    path = tmp_path / "a.json"
    data = {"score": 0.1 + 0.2, "rows": (1, 2), "none": math.nan}
    write_json(path, seal(data, "question"))
    found = read_sealed(path, "result", "question")
    assert (found["score"], found["rows"], found["id"]) == (0.1 + 0.2, [1, 2], "question")
    whole = path.read_text()
    with pytest.raises(UsageError, match=r"a\.json answers another question than this one: delete"):
        read_sealed(path, "result", "other")
    for change, said in (
        (whole.replace("1", "3", 1), "was changed after it was written"),
        (json.dumps({"score": 1, "id": "question"}), "was changed after it was written"),
        ("[]", r"is no result \(delete it .*\): it is no object"),
        ("", r"is no result \(delete it .*\): it is empty"),
        (whole[:9], r"is no result \(delete it"),
    ):
        path.write_text(change)
        with pytest.raises(UsageError, match=said):
            read_sealed(path, "result", "question")
