"""A study never goes on with something else: every field of its identity, for every study."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import headcount as hc
from headcount.errors import UsageError
from headcount.runs.identity import told
from headcount.tasks import Examples
from headcount.tasks.encoding import encode_texts
from headcount.training.options import TrainOptions
from runs import flat
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
        asked |= {"draws": 5, "device": "cpu"}
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


def padded_left(asked):
    tokenizer = copy.deepcopy(asked["tokenizer"])
    tokenizer.padding_side = "left"
    return {"tokenizer": tokenizer}


def given_inputs(asked):
    return {"inputs": encode_texts(["the king sees a cat"], asked["tokenizer"], max_length=16)}


CHANGES = {
    "weights": moved,
    "config.hidden_act": lambda asked: {"model": tiny(asked["tokenizer"], hidden_act="relu")},
    "tokenizer": padded_left,
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
    "draws": lambda asked: {"draws": 6},
    "samples": lambda asked: {"samples": 9},
    "max_length": lambda asked: {"max_length": 16},
    "inputs": given_inputs,
}
OWN = {
    "curve": {
        "recover": {"recover": True},
        "finetune": {"finetune": TRAIN},
        "random.within": {"options": {"random": {"within": "layer"}}},
    },
    "compare": {
        "ratio": {"ratio": 0.25},
        "train.learning_rate": {"train": replace(TRAIN, learning_rate=1e-3)},
        "random.within": {"options": {"random": {"within": "layer"}}},
    },
    "sweep": {
        "over": {"over": "settle"},
        "train.steps": {"train": replace(TRAIN, steps=2)},
        "straight-through.gate_lr": {"options": {"straight-through": {"gate_lr": 0.2}}},
    },
}
UNASKED = [("sweep", "samples"), ("sweep", "inputs")]
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
    settings = json.loads((folder / "settings.json").read_text())
    assert set(settings["versions"]) >= {"headcount", "torch", "transformers"}
    settings["versions"]["torch"] = "1.0"
    kept = (folder / "settings.json").read_text()
    try:
        (folder / "settings.json").write_text(json.dumps(settings))
        STUDIES[study](**again, out=folder)
    finally:
        (folder / "settings.json").write_text(kept)
    assert "versions.torch was 1.0, now" in caplog.text


def test_values_of_any_kind_have_a_name_by_content(tmp_path):
    file = tmp_path / "a.npz"
    file.write_bytes(b"1")
    first = told(file)
    file.write_bytes(b"2")
    assert told(file) != first
    pairs = [
        ({"encoder": np.eye(2)}, {"encoder": np.eye(2) * 2}),
        ([{"input_ids": torch.ones(2)}], [{"input_ids": torch.zeros(2)}]),
        (
            hc.Scores(hc.Layout.of(encoder=[2]), (1, 2)),
            hc.Scores(hc.Layout.of(encoder=[2]), (2, 1)),
        ),
    ]
    for one, other in pairs:
        assert told(one) == told(copy.deepcopy(one)) != told(other)


def test_a_text_longer_than_a_file_name_is_told_as_it_is():
    mask = hc.Mask.full(hc.Layout.of(encoder=[12] * 12))
    text = json.dumps(mask.to_json())
    assert told(text) == text
    assert told("a\0b") == "a\0b"
