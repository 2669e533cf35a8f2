from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

from headcount.base.errors import UsageError
from headcount.tasks import Examples, Task, open_task
from headcount.tasks.parts import SCORED, half_name, read_half


def texts(task: Task, split: str) -> list[tuple[str | None, ...]]:
    return list(zip(*task.load(split).texts, strict=True))


def test_own_rows_that_decide_are_never_scored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [f"text {number % 40},{number % 2}" for number in range(60)]  # 20 of them twice
    (tmp_path / "mine.csv").write_text("\n".join(["body,y", *rows]))
    how = {"data": tmp_path / "mine.csv", "columns": "body", "label": "y"}
    task = open_task("classification", **how)
    train, dev = (texts(task, split) for split in ("train", "dev"))
    assert not set(train) & set(dev)
    assert len(train) + len(dev) == 60
    assert len(dev) == pytest.approx(60 * SCORED, abs=2)
    assert task.evaluation == "dev"
    assert len(task.load("all")) == 60
    assert task.parts is not None
    everything = texts(task, "all")
    for split, own in (("train", train), ("dev", dev)):
        numbers = task.parts.rows[split]
        assert [everything[number] for number in numbers] == own
        assert task.load(split).labels.tolist() == [number % 2 for number in numbers]  # type: ignore[union-attr]
    assert task.parts.to_json() == {
        "file": "mine.csv", "seed": 0, "rows": {"train": len(train), "dev": len(dev)},
    }  # fmt: skip
    assert [record.getMessage() for record in caplog.records] == [str(task.parts)]
    assert caplog.records[0].levelno == logging.WARNING
    assert "'mine.csv' has no train and dev of its own and was split (seed 0): " in str(task.parts)
    assert str(tmp_path) not in str(task.parts)
    assert texts(open_task("classification", **how), "dev") == dev


@pytest.mark.parametrize("option", ["data", "train", "dev"])
@pytest.mark.parametrize("kind", ["causal-lm", "masked-lm"])
def test_a_text_that_decides_is_never_scored(kind: str, option: str, tmp_path: Path) -> None:
    lines = [f"line {number} of this text" if number % 5 else "= same =" for number in range(90)]
    path = tmp_path / "text.txt"
    path.write_text("\n".join(lines))
    task = open_task(kind, **{option: path})
    train, dev = (list(task.load(split).texts[0]) for split in ("train", "dev"))
    assert not set(train) & set(dev)
    assert 90 * SCORED - 20 <= len(dev) <= 90 * SCORED + 20
    assert list(task.load("all").texts[0]) == lines
    assert task.parts is not None
    if kind == "causal-lm":  # a text stays in one piece
        numbers = task.parts.rows["dev"]
        assert (numbers[1:] - numbers[:-1] == 1).all()
        assert dev == lines[numbers[0] : numbers[-1] + 1]


def test_a_text_of_one_line_is_cut_between_words(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    words = [f"word{number}" for number in range(500)]
    path.write_text("  ".join(words))
    task = open_task("causal-lm", data=path)
    train, dev = ("".join(task.load(split).texts[0]).split() for split in ("train", "dev"))  # type: ignore[arg-type]
    assert sorted(train + dev) == sorted(words)
    assert len(dev) == pytest.approx(500 * SCORED, abs=64)


def test_a_translation_in_one_pair_of_files(tmp_path: Path) -> None:
    for language in ("en", "de"):
        lines = [f"{language} {number}" for number in range(30)]
        (tmp_path / f"test.{language}").write_text("\n".join(lines))
    task = open_task("translation", data=tmp_path, languages=("en", "de"))
    assert task.splits == ("train", "dev", "all")
    train, dev = (texts(task, split) for split in ("train", "dev"))
    assert not set(train) & set(dev)
    assert len(train) + len(dev) == 30
    assert {pair[0][3:] == pair[1][3:] for pair in train + dev} == {True}  # type: ignore[index]


def test_what_has_one_row_only_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("the same\n" * 9)
    for kind in ("masked-lm", "causal-lm"):
        task = open_task(kind, train=tmp_path / "x.txt")
        assert (task.splits, task.evaluation, task.parts) == (("train",), "train", None)
        assert len(task.load()) == 9


def test_two_files_are_two_splits(tmp_path: Path) -> None:
    for split in ("train", "dev"):
        (tmp_path / f"{split}.txt").write_text(f"{split} one\n{split} two\n")
    task = open_task("masked-lm", data=tmp_path)
    assert (task.splits, task.parts) == (("train", "dev"), None)


@pytest.mark.parametrize("share", [0.5, 0.25])
def test_halves_of_a_split_share_no_row(share: float) -> None:
    rows = [f"text {number % 40}" for number in range(60)]  # 20 of them twice
    task = Task(
        name="mine", kind="classification", texts=("text",), labels=("a", "b"),
        metrics=("accuracy",), loader=lambda split: Examples((rows,), np.arange(60) % 2),
    )  # fmt: skip
    names = [half_name("dev", side, share, 3) for side in ("selection", "held-out")]
    chosen, scored = (texts(task, name) for name in names)
    assert not set(chosen) & set(scored)
    assert len(chosen) + len(scored) == 60
    assert len(scored) == pytest.approx(60 * share, abs=2)
    assert texts(task, names[0]) == chosen
    assert texts(task, half_name("dev", "selection", share, 4)) != chosen
    assert len(task.load(names[1], limit=5)) == 5
    with pytest.raises(UsageError, match="no split 'dve'"):
        task.load(half_name("dve", "selection", share, 3))


def test_halves_of_a_packed_text_are_stretches(tmp_path: Path) -> None:
    for split in ("train", "dev"):
        lines = [f"{split} line {number}" for number in range(80)]
        (tmp_path / f"{split}.txt").write_text("\n".join(lines))
    task = open_task("causal-lm", data=tmp_path)
    assert task.packed
    every, chosen, scored = (
        list(task.load(name).texts[0])
        for name in (
            "dev",
            half_name("dev", "selection", 0.5, 0),
            half_name("dev", "held-out", 0.5, 0),
        )
    )
    assert sorted(chosen + scored) == sorted(every)
    first = every.index(scored[0])
    assert every[first : first + len(scored)] == scored
    assert len(scored) == pytest.approx(40, abs=3)


@pytest.mark.parametrize("rows", [["one"], ["the same"] * 9])
def test_what_cannot_be_halved_is_refused(rows: list[str]) -> None:
    task = Task(
        name="mine", kind="causal-lm", texts=("text",), metrics=("perplexity",),
        loader=lambda split: Examples((rows,)),
    )  # fmt: skip
    with pytest.raises(UsageError, match=f"'dev' cannot be drawn .* it has {len(rows)}, or all"):
        task.load("dev:held-out:0.5:0")


@pytest.mark.parametrize(
    "name", ["dev", "dev:held-out", "dev:held-out:0:0", "dev:half:0.5:0", "dev:held-out:1.2.3:0"]
)
def test_other_names_are_no_halves(name: str) -> None:
    assert read_half(name) is None
