from __future__ import annotations

import json

import pytest
from transformers import AutoTokenizer

import headcount as hc
from headcount.models.shipped import locate
from headcount.runs.overlap import given_keys, keys_of, set_name, shared_note, used_keys
from headcount.runs.subject import make_subject
from headcount.studies.search.search import rows_to_search
from headcount.tasks import open_task
from headcount.tasks.task import Examples
from training.conftest import pets, tiny

FEW = hc.Scoring(bootstrap=20, limit=60)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A model, and a dev file whose first 40 rows are in the train file, with other blanks."""
    made = tmp_path_factory.mktemp("leak")
    tokenizer = AutoTokenizer.from_pretrained(locate("pocket-bert"))
    tiny(tokenizer).save_pretrained(made / "model")
    tokenizer.save_pretrained(made / "model")
    rows = {split: pets().load(split) for split in ("train", "dev")}
    lines = {
        split: [f"{text},{label}" for text, label in zip(each.texts[0], each.labels, strict=True)]
        for split, each in rows.items()
    }
    twice = [line.replace(" ", "  ", 1) for line in lines["dev"][:40]]
    for name, train in (("leak", [*lines["train"], *twice]), ("clean", lines["train"])):
        (made / name).mkdir()
        for split, own in (("train", train), ("dev", lines["dev"])):
            (made / name / f"{split}.csv").write_text("\n".join(["text,label", *own]) + "\n")
    return made


def task_of(data, name):
    return open_task("classification", data=data / name, columns="text", label="label")


def notes_of(data, name, **how):
    told = []
    model = hc.load(data / "model", task="classification")
    found = hc.prune(
        model, "importance", 0.5, task=task_of(data, name), scoring=FEW, baseline=0,
        note=told.append, **how,
    )  # fmt: skip
    return told, list(found.record.notes)


def test_rows_that_decide_and_are_scored_are_counted_by_their_texts(data):
    told, kept = notes_of(data, "leak", calibration=hc.Calibration(samples=500))
    (note,) = [text for text in told if "also calibration" in text]
    assert note in kept
    task = task_of(data, "leak")
    train, dev = (keys_of(task.load(split)) for split in ("train", "dev"))
    scored = keys_of(task.load("dev", limit=60, seed=0))
    there = sum(row in train for row in scored)
    assert 15 < there < 40
    assert note.startswith(f"{there} of 60 held-out rows are also calibration rows: ")
    assert sum(row in train for row in dev) == 40


def test_only_rows_that_were_really_looked_at_count(data):
    told, _ = notes_of(data, "leak", calibration=hc.Calibration(samples=4))
    task = task_of(data, "leak")
    few, scored = (
        keys_of(task.load(split, limit=n, seed=0)) for split, n in (("train", 4), ("dev", 60))
    )
    shared = sum(row in few for row in scored)
    counts = [int(text.split()[0]) for text in told if "also calibration" in text]
    assert counts == ([shared] if shared else [])
    assert shared <= 4
    told, kept = notes_of(data, "clean", calibration=hc.Calibration(samples=500))
    assert not [text for text in [*told, *kept] if "also" in text]


def test_texts_that_were_given_count_too(data, tmp_path):
    dev = task_of(data, "clean").load("dev", limit=60, seed=0).texts[0]
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join([*dev[:7], "another text"]) + "\n")
    for inputs in (texts, list(dev[:7])):
        told, kept = notes_of(
            data, "clean", calibration=hc.Calibration(rows=inputs, samples=8),
            repair=(hc.Recover(),),
        )  # fmt: skip
        shared = [text for text in told if "also calibration" in text]
        assert len(shared) == 1
        assert shared[0] in kept
        assert int(shared[0].split()[0]) >= 7


def test_studies_say_it_once_and_in_every_record(data, tmp_path):
    told = []
    hc.curve(
        hc.load(data / "model", task="classification"), task_of(data, "leak"),
        ["importance"], [0.25, 0.5], seeds=2, scoring=FEW, note=told.append, out=tmp_path / "curve",
        calibration=hc.Calibration(samples=500),
    )  # fmt: skip
    assert len([text for text in told if "also calibration" in text]) == 1
    records = [json.loads(file.read_text()) for file in (tmp_path / "curve").rglob("record.json")]
    notes = [record["notes"] for record in records]
    assert len(notes) == 4
    assert all(any("also calibration" in text for text in each) for each in notes)


def test_a_search_says_which_selection_rows_are_held_out(data, tmp_path):
    told = []
    hc.search(
        hc.load(data / "model", task="classification"), task_of(data, "leak"),
        ["random"], max_drop=0.9, note=told.append, scoring=hc.Scoring(bootstrap=20),
        search_options=hc.SearchOptions(selection_split="train"), repair=(), baseline=0,
        out=tmp_path / "found",
    )  # fmt: skip
    (note,) = [text for text in told if "also selection" in text]
    assert note.startswith("40 of 96 held-out rows are also selection rows")
    assert note in json.loads((tmp_path / "found" / "search.json").read_text())["notes"]
    subject = make_subject(str(data / "model"), task_of(data, "leak"))
    choosing, stating = rows_to_search(subject, hc.Scoring(), hc.SearchOptions())
    halves = {
        set_name(str(rows.split)): keys_of(subject.scored(rows).examples)
        for rows in (choosing, stating)
    }
    assert shared_note({"selection": halves["selection"]}, halves["held-out"], "held-out") is None


def test_keys_are_texts_pairs_and_never_what_is_empty():
    pairs = Examples((["a  b", "", "c"], ["x", None, None]))
    assert keys_of(pairs) == [("a b", "x"), ("", ""), ("c", "")]
    assert shared_note({"training": [("", "")]}, keys_of(pairs), "held-out") is None
    assert given_keys(["a  b", ("c", "d")]) == [("a b",), ("c", "d")]
    assert given_keys({"input_ids": [[1, 2]]}) == given_keys([{"input_ids": [1]}]) == []
    task = pets()
    used = {
        "calibration": {"split": "train", "n": 5, "seed": 3},
        "repair": {"split": "train", "n": 5, "seed": 4},
        "training": {"split": "train", "n": 96, "seed": None},
        "evaluation": {"split": "dev"},
    }
    both = [key for seed in (3, 4) for key in keys_of(task.load("train", limit=5, seed=seed))]
    assert used_keys(task, used) == {"calibration": both, "training": keys_of(task.load("train"))}
