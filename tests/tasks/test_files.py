"""Damaged tables; what good ones hold is tested with the tasks that read them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headcount.errors import UsageError
from headcount.tasks import files, open_task
from headcount.tasks.files import read_table


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.csv", b"text\n" + b"x" * 140_000 + b"\n", "is not a table: field larger"),
        ("a.csv", b"text\n\xff\n", "is not UTF-8 text"),
        ("a.jsonl", b'{"text": ' + b"[" * 100_000 + b"}\n", "line 1 is not JSON: .*nested"),
        ("a.jsonl", b'{"text": 1}\n{"text": ' + b"9" * 5000 + b"}\n", "line 2 is not JSON"),
        ("a.parquet", b"PAR1 nothing PAR1", "is not a Parquet file"),
    ],
)
def test_damage_is_one_sentence(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UsageError, match=said):
        read_table(tmp_path / name, ["text"])


def test_dates_that_python_has_not_are_one_sentence(tmp_path: Path) -> None:
    column = pa.array([2**62], pa.timestamp("us"))
    pq.write_table(pa.table({"text": column}), tmp_path / "a.parquet")
    with pytest.raises(UsageError, match="is not a Parquet file"):
        read_table(tmp_path / "a.parquet", ["text"])


def test_a_small_file_with_a_large_table_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 2000, pa.int32()), ["x" * 5000])
    pq.write_table(pa.table({"text": texts}), path)
    assert path.stat().st_size < 10_000
    assert len(read_table(path, ["text"])["text"]) == 2000
    monkeypatch.setattr(files, "LARGEST", 2**20)
    with pytest.raises(UsageError, match="would unpack to more than"):
        read_table(path, ["text"])


@pytest.mark.parametrize("label", ["²", "--5", "9" * 5000, "٣"])
def test_labels_that_only_look_like_numbers_are_names(tmp_path: Path, label: str) -> None:
    rows = [{"text": "a", "label": label}, {"text": "b", "label": "7"}] * 4
    (tmp_path / "train.jsonl").write_text("\n".join(map(json.dumps, rows)))
    task = open_task("classification", data=tmp_path, columns="text", label="label")
    assert set(task.labels) == {label, "7"}
