from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headcount.base.errors import NotFoundError, UsageError
from headcount.tasks import open_task

ROWS = [("It, rains.", "wet", "10"), ('He said "no".', "dry", "2"), ("Ünder.", "wet", "2")]


def write(path: Path, rows: list[tuple[str, str, str]] = ROWS) -> Path:
    kind = path.suffix
    if kind == ".csv":
        lines = ['"{}",{},{}'.format(a.replace('"', '""'), b, c) for a, b, c in rows]
        path.write_text("body,other,y\n" + "\n".join(lines) + "\n", encoding="utf-8")
    elif kind == ".tsv":
        lines = ["\t".join(row) for row in rows]
        path.write_text("body\tother\ty\n" + "\n".join(lines) + "\n", encoding="utf-8")
    elif kind == ".jsonl":
        lines = [json.dumps({"body": a, "other": b, "y": int(c)}) for a, b, c in rows]
        path.write_text("\n".join(lines), encoding="utf-8")
    else:
        columns = list(zip(*rows, strict=True))
        pq.write_table(pa.table(dict(zip(("body", "other", "y"), columns, strict=True))), path)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_every_format_gives_the_same_rows(suffix: str, tmp_path: Path) -> None:
    for split in ("train", "valid"):
        write(tmp_path / f"{split}{suffix}")
    task = open_task("classification", data=tmp_path, columns=("body", "other"), label="y")
    assert task.splits == ("train", "dev")
    assert task.labels == ("2", "10")  # by value, not by spelling
    rows = task.load("dev")
    assert rows.texts == ([r[0] for r in ROWS], [r[1] for r in ROWS])
    assert rows.labels is not None
    assert rows.labels.tolist() == [1, 0, 0]


def test_classes_are_those_of_all_splits_and_stable(tmp_path: Path) -> None:
    train = write(tmp_path / "a.csv")
    dev = write(tmp_path / "b.csv", [("x", "new", "0")])
    task = open_task("classification", train=train, dev=dev, columns="body", label="other")
    assert task.labels == ("dry", "new", "wet")
    assert task.metrics[0] == "accuracy"
    assert task.load("dev").labels.tolist() == [1]  # type: ignore[union-attr]


def test_regression_and_single_file(tmp_path: Path) -> None:
    task = open_task("regression", data=write(tmp_path / "x.jsonl"), columns="body", label="y")
    assert task.splits == ("train", "dev", "all")
    assert task.metric == "spearman"
    assert task.load("all").labels.tolist() == [10.0, 2.0, 2.0]  # type: ignore[union-attr]
    assert sorted(len(task.load(split)) for split in ("train", "dev")) == [1, 2]
    with pytest.raises(UsageError, match="not a number: row 1 'wet'"):
        open_task("regression", data=tmp_path / "x.jsonl", columns="body", label="other")


def test_wrong_columns_say_what_is_there(tmp_path: Path) -> None:
    for suffix in (".csv", ".jsonl", ".parquet"):
        path = write(tmp_path / f"x{suffix}")
        with pytest.raises(
            UsageError, match=r"no column boddy. Did you mean 'body'\? It has: body"
        ):
            open_task("classification", data=path, columns="boddy", label="y")


def test_missing_settings_and_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="pass --columns COLUMN"):
        open_task("classification", data=tmp_path)
    with pytest.raises(UsageError, match="needs data"):
        open_task("classification", columns="a", label="b")
    with pytest.raises(NotFoundError, match=r"No train or dev file in .* found nothing"):
        open_task("classification", data=tmp_path, columns="a", label="b")
    with pytest.raises(NotFoundError, match="no file"):
        open_task("classification", train=tmp_path / "no.csv", columns="a", label="b")
    (tmp_path / "x.xlsx").write_text("x")
    with pytest.raises(UsageError, match="not a table headcount can read"):
        open_task("classification", train=tmp_path / "x.xlsx", columns="a", label="b")


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        ("x.jsonl", b"not json", UsageError, "line 1 is not JSON"),
        ("x.jsonl", b"[1]", UsageError, "line 1 is not a JSON object"),
        ("x.jsonl", b"\n\n", NotFoundError, "has no rows"),
        ("x.csv", b"", NotFoundError, "is empty"),
        ("x.csv", b"a,b\n", NotFoundError, "has no rows"),
        ("x.csv", b"the film was fine,1\nit was not,0\n", UsageError, "no header line with a, b"),
        ("x.csv", b"a,b\n\xff\xfe,1\n", UsageError, "is not UTF-8"),
        ("x.parquet", b"no parquet", UsageError, "is not a Parquet file"),
    ],
)
def test_broken_files(
    name: str, content: bytes, error: type[Exception], message: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(error, match=message):
        open_task("classification", data=tmp_path / name, columns="a", label="b")


@pytest.mark.parametrize(("name", "noted"), [("test.csv", True), ("validation.csv", False)])
def test_a_test_file_that_is_taken_as_dev_is_said(tmp_path, caplog, name, noted) -> None:
    write(tmp_path / "train.csv")
    write(tmp_path / name)
    task = open_task("classification", data=tmp_path, columns="body", label="y")
    assert task.evaluation == "dev"
    assert bool(task.notes) == noted
    assert [record.getMessage() for record in caplog.records] == list(task.notes)
    assert all("'test.csv' is used as dev" in note for note in task.notes)
    named = open_task(
        "classification", train=tmp_path / "train.csv", dev=tmp_path / name, columns="body",
        label="y",
    )  # fmt: skip
    assert named.notes == ()
