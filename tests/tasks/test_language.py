from __future__ import annotations

from pathlib import Path

import pytest

from headcount.base.errors import NotFoundError, UsageError
from headcount.tasks import open_task


def test_lines_of_a_text_file(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("one\n\n two \n")
    (tmp_path / "valid.txt").write_text("three")
    task = open_task("masked-lm", data=tmp_path)
    assert task.metrics == ("recall@1", "perplexity")
    assert task.load("train").texts[0] == ["one", " two "]
    assert task.load().texts[0] == ["three"]
    causal = open_task("causal-lm", data=tmp_path / "train.txt")
    assert causal.metrics == ("perplexity",)
    assert causal.packed
    windows = open_task("causal-lm", data=tmp_path, window=8)
    assert windows.metrics == ("perplexity", "bits_per_byte")
    assert windows.load("train").texts[0] == ["one", "", " two "]


def test_bad_text_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs a text file"):
        open_task("masked-lm")
    (tmp_path / "blank.txt").write_text("\n \n")
    with pytest.raises(NotFoundError, match="has no text"):
        open_task("masked-lm", data=tmp_path / "blank.txt").load()
    with pytest.raises(NotFoundError, match="no folder"):
        open_task("masked-lm", data=tmp_path / "gone.txt")


def test_parallel_files(tmp_path: Path) -> None:
    for stem, lines in {"train": 3, "val": 2, "test_2016": 1}.items():
        for language in ("en", "de"):
            (tmp_path / f"{stem}.{language}").write_text(f"{language}\n" * lines)
    task = open_task("translation", data=tmp_path, languages=("en", "de"))
    assert task.splits == ("train", "dev", "test")
    assert [len(task.load(split)) for split in task.splits] == [3, 2, 1]
    assert task.load().texts == (["en"] * 2, ["de"] * 2)
    (tmp_path / "val.de").write_text("nur eine\n")
    with pytest.raises(UsageError, match=r"has 2 lines and .* has 1"):
        task.load("dev")


def test_a_table_with_two_columns(tmp_path: Path) -> None:
    (tmp_path / "dev.csv").write_text("a,b\nyes,ja\n")
    task = open_task("translation", data=tmp_path, columns=("a", "b"))
    assert task.load().texts == (["yes"], ["ja"])
    with pytest.raises(UsageError, match="two text columns"):
        open_task("translation", data=tmp_path, columns="a")


def test_pairs_that_are_no_translation(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text('{"long": "a b c", "short": "c"}\n')
    (tmp_path / "dev.csv").write_text("long,short\na b,b\nd e,\n")
    with pytest.raises(UsageError, match="Row 2 of dev has no text in 'short'"):
        open_task("text-to-text", data=tmp_path, columns=("long", "short"))
    (tmp_path / "dev.csv").write_text("long,short\na b,b\nd e,e\n")
    task = open_task("text-to-text", data=tmp_path, columns=("long", "short"))
    assert (task.kind, task.metrics) == ("text-to-text", ("rouge_l", "chrf"))
    assert task.load("train").texts == (["a b c"], ["c"])
    assert task.load("dev").texts == (["a b", "d e"], ["b", "e"])
    with pytest.raises(UsageError, match=r"no column shrt\. Did you mean 'short'"):
        open_task("text-to-text", data=tmp_path, columns=("long", "shrt"))
    with pytest.raises(UsageError, match="two text columns"):
        open_task("text-to-text", data=tmp_path)
    with pytest.raises(UsageError, match="--task translation for parallel files"):
        open_task("text-to-text", data=tmp_path, languages=("en", "de"))


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--languages en de"):
        open_task("translation", data=tmp_path)
    with pytest.raises(UsageError, match="needs a folder"):
        open_task("translation", languages=("en", "de"))
    with pytest.raises(NotFoundError, match=r"No parallel files like train.en and train.de"):
        open_task("translation", data=tmp_path, languages=("en", "de"))
    with pytest.raises(UsageError, match="two languages"):
        open_task("translation", data=tmp_path, languages=("en",))
