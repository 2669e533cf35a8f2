"""Files of the tasks of embedding models."""

from __future__ import annotations

from pathlib import Path

import pytest

from headcount.base.errors import UsageError
from headcount.tasks import open_task


def test_a_file_of_texts_is_split(tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("\n".join(f"text {n}" for n in range(30)))
    task = open_task("embedding", data=tmp_path / "texts.txt")
    assert (task.kind, task.metrics) == ("embedding", ("fidelity", "neighbours@10"))
    train, dev = task.load("train"), task.load("dev")
    assert len(train) + len(dev) == 30
    assert not {*train.texts[0]} & {*dev.texts[0]}
    assert dev.labels is None
    with pytest.raises(UsageError, match="Task 'embedding' needs a text file"):
        open_task("embedding")


def test_pairs_have_two_columns_and_a_number(tmp_path: Path) -> None:
    (tmp_path / "dev.csv").write_text("a,b,score\nx,y,1.5\nz,w,4\n")
    (tmp_path / "train.csv").write_text("a,b,score\nx,y,2\n")
    task = open_task("similarity", data=tmp_path, columns=("a", "b"), label="score")
    assert (task.name, task.kind, task.metrics) == (
        "similarity", "similarity", ("spearman", "pearson"),
    )  # fmt: skip
    dev = task.load("dev")
    assert dev.texts == (["x", "z"], ["y", "w"])
    assert dev.labels is not None
    assert dev.labels.tolist() == [1.5, 4.0]
    with pytest.raises(UsageError, match="is of two texts: pass --columns FIRST SECOND"):
        open_task("similarity", data=tmp_path, columns=("a",), label="score")
    (tmp_path / "dev.csv").write_text("a,b,score\nx,y,good\n")
    with pytest.raises(UsageError, match="good"):
        open_task("similarity", data=tmp_path, columns=("a", "b"), label="score")
