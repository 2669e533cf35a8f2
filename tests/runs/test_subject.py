"""What is derived of a model and its task is derived once."""

from __future__ import annotations

from dataclasses import replace

import pytest

import headcount as hc
from headcount.base.errors import NotFoundError, UsageError
from headcount.runs.subject import Subjects, make_subject, read_texts
from headcount.tasks.calibration import Calibration
from headcount.tasks.encoding import encode_texts
from headcount.training.scoring import Scoring


@pytest.fixture
def read(task):
    """The task with a loader that notes which splits were read."""
    splits: list[str] = []

    def load(split):
        splits.append(split)
        return task.load(split)

    return replace(task, loader=load), splits


def test_a_split_is_loaded_once(model, read, tokenizer):
    task, splits = read
    subject = make_subject(model, task, tokenizer=tokenizer)
    for _ in range(2):
        assert subject.rows_of("train") != subject.rows_of("dev")
        subject.looked(Calibration(samples=8), 0, 16)
        subject.scored(Scoring(bootstrap=0))
    for seed in (0, 1):
        hc.prune(subject, "random", 0.5, seed=seed, baseline=1, scoring=Scoring(bootstrap=0))
    assert sorted(splits) == ["dev", "train"]


def test_rows_are_looked_up_once_and_drawn_anew_for_every_seed(model, task, tokenizer):
    subject = make_subject(model, task, tokenizer=tokenizer)
    first = subject.looked(Calibration(samples=8), 0, 16)
    assert subject.looked(Calibration(samples=8), 0, 16) is first
    others = [
        (Calibration(samples=8), 1, 16),
        (Calibration(samples=9), 0, 16),
        (Calibration(samples=8), 0, 8),
    ]
    assert all(subject.looked(*other) is not first for other in others)
    assert len(subject.looked(Calibration(samples=9), 0, 16)) == 9
    scored = subject.scored(Scoring(bootstrap=0))
    assert subject.scored(Scoring(bootstrap=0)) is scored
    assert subject.scored(Scoring(bootstrap=0, limit=5)) is not scored


def test_a_subject_is_its_own(model, task, tokenizer):
    subject = make_subject(model, task, tokenizer=tokenizer)
    assert make_subject(subject) is subject
    assert subject.layout == hc.layout(model)
    assert subject.name
    bare = make_subject(model)
    assert (bare.task, bare.tokenizer) == (None, None)
    for ask in (lambda: bare.rows_of("dev"), lambda: bare.scored(Scoring()), bare.need_task):
        with pytest.raises(UsageError, match="There is no task to take rows from"):
            ask()


def test_given_texts_are_read_once(model, tokenizer, tmp_path):
    file = tmp_path / "texts"
    file.write_text("the king sees a cat\n\n  \nthe dog\n")
    subject = make_subject(model, tokenizer=tokenizer)
    found = subject.given(Calibration(rows=file), 16)
    assert len(found) == 2
    assert subject.given(Calibration(rows=str(file)), 16) is found
    file.write_text("the dog\n")
    assert len(subject.given(Calibration(rows=str(file)), 16)) == 1
    assert subject.given(Calibration(), 16) is None
    batches = [{"input_ids": None}]
    assert subject.given(Calibration(rows=batches), 16) is batches


def test_given_rows_are_known_by_what_is_in_them(model, tokenizer):
    subject = make_subject(model, tokenizer=tokenizer)
    texts = [["the king", "a cat"], ["the dog"], ["a king sees a cat"]]
    for text in texts * 2:  # lists that are gone leave their place in memory to the next
        found = subject.given(Calibration(rows=[*text]), 16)
        wanted = encode_texts(text, tokenizer, max_length=16)
        assert found.columns == wanted.columns
    kept = ["the dog"]
    first = subject.given(Calibration(rows=kept), 16)
    assert subject.given(Calibration(rows=["the dog"]), 16) is first
    kept.append("a cat")
    assert len(subject.given(Calibration(rows=kept), 16)) == 2
    stream = Calibration(rows=iter(["the dog", "a cat"]))
    assert [len(subject.given(stream, 16)) for _ in range(2)] == [2, 2]


def test_rows_of_a_file_are_drawn_for_every_seed(model, tokenizer, tmp_path):
    """They are as many as asked for, as of a task: the file may be long."""
    words = ["cat", "dog", "king", "doctor", "bird", "judge", "baker", "big", "the", "a"]
    (tmp_path / "texts.txt").write_text("\n".join(words) + "\n")
    subject = make_subject(model, tokenizer=tokenizer)
    all_ten = subject.given(Calibration(rows=tmp_path / "texts.txt", samples=512), 16)
    assert len(all_ten) == 10
    four = Calibration(rows=tmp_path / "texts.txt", samples=4)
    ids = [subject.given(four, 16, seed).columns["input_ids"] for seed in (0, 1, 0)]
    assert [len(rows) for rows in ids] == [4, 4, 4]
    assert ids[0] == ids[2] != ids[1]
    assert all(row in all_ten.columns["input_ids"] for rows in ids for row in rows)
    assert len(subject.given(Calibration(rows=words, samples=4), 16)) == 10


def test_texts_that_cannot_be_read_are_refused(model, tokenizer, tmp_path):
    with pytest.raises(NotFoundError, match=r"Cannot read the file of texts .*no\.txt: No such"):
        read_texts(tmp_path / "no.txt", model, tokenizer, 16)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(UsageError, match="is no file of texts: it is not UTF-8 text"):
        read_texts(tmp_path / "bytes", model, tokenizer, 16)
    (tmp_path / "empty").write_text("\n \n")
    with pytest.raises(UsageError, match="has no lines with text"):
        read_texts(tmp_path / "empty", model, tokenizer, 16)
    (tmp_path / "texts").write_text("a cat\n")
    with pytest.raises(UsageError, match="need the model's tokenizer: pass --tokenizer"):
        read_texts(tmp_path / "texts", model, None, 16)


def test_the_last_subjects_stay_open_while_there_is_room(model):
    size = model.get_memory_footprint()
    opened: list[str] = []

    def get(kept: Subjects, key: str) -> None:
        kept.get(key, lambda: (opened.append(key), make_subject(model))[1])

    kept = Subjects(most=2)
    for key in "aba":
        get(kept, key)
    get(kept, "c")  # b was used longest ago
    get(kept, "a")
    assert opened == ["a", "b", "c"]
    opened.clear()
    small = Subjects(size=size)
    for key in "aab":
        get(small, key)
    get(small, "a")
    assert opened == ["a", "b", "a"]  # two do not fit


def test_rows_in_memory_are_named_in_records_and_cannot_be_opened_again(tmp_path):
    texts = [f"the {size} cat sees a dog" for size in ("big", "small", "young", "old", "good")]
    task = hc.task({"train": texts, "dev": texts[:3]}, kind="masked-lm", metrics="perplexity")
    hc.prune(
        "pocket-bert", "random", 0.5, task=task, baseline=0, scoring=Scoring(bootstrap=0),
        out=tmp_path / "small",
    )  # fmt: skip
    run = hc.load_record(tmp_path / "small").run
    assert (run.task, run.source.metrics) == ("masked-lm", ("perplexity",))
    assert run.source.in_memory.startswith("5 of train and 3 of dev, ")
    with pytest.raises(UsageError, match=r"5 of train and 3 of dev, .* were in the memory of the"):
        hc.run(run)
    assert not make_subject("pocket-bert", task).named
    # a task that was put together in Python has no file either
    alone = make_subject("pocket-bert", replace(task, source=None))
    assert (alone.named, alone.source.in_memory) == (False, "a Task of Python")


def test_rows_of_files_are_opened_again(tmp_path):
    (tmp_path / "texts.txt").write_text("".join(f"the cat sees {n}\n" for n in range(9)))
    task = hc.task(tmp_path / "texts.txt", kind="masked-lm")
    subject = make_subject("pocket-bert", task)
    assert subject.named
    assert subject.source.data == tmp_path / "texts.txt"
    hc.prune(
        "pocket-bert", "random", 0.5, task=task, baseline=0, scoring=Scoring(bootstrap=0),
        out=tmp_path / "small",
    )  # fmt: skip
    record = hc.load_record(tmp_path / "small")
    again = hc.run(record.run)
    keys = ("before", "after")
    assert [again["scores"][key]["score"] for key in keys] == [
        record["scores"][key]["score"] for key in keys
    ]
