"""Damaged tables; what good ones hold is tested with the tasks that read them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headcount.base.errors import UsageError
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


def test_a_column_that_arrow_cannot_describe_does_not_end_the_process(tmp_path: Path) -> None:
    """Sizes kept for values that may be missing, under a schema where none may be."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["a", "b"], "label": [0, 1]}), path)
    optional, required = (b"\x15\x0c\x25" + way + b"\x18\x04text" for way in (b"\x02", b"\x00"))
    data = path.read_bytes()
    assert data.count(optional) == 1
    path.write_bytes(data.replace(optional, required))
    with pytest.raises(UsageError, match=r"is not a Parquet file: .*histogram size mismatch"):
        read_table(path, ["text"])


def test_pages_that_unpack_to_too_much_are_refused_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    texts = pa.table({"text": [f"{i}" + "x" * 5000 for i in range(500)]})
    pq.write_table(texts, path, use_dictionary=False, compression="zstd")
    monkeypatch.setattr(files, "LARGEST", 2**20)
    monkeypatch.setattr(files, "PACKED", 1)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(UsageError, match="would unpack to more than 1,048,576 characters"):
        read_table(path, ["text"])


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", None, "é", "a"]),
        pa.array(["a", None, "é", "a"], pa.large_string()),
        pa.array(["a", None, "é", "a"]).dictionary_encode(),
        pa.array([b"a", None, "é".encode(), b"a"]),
    ],
    ids=lambda column: str(column.type),
)
@pytest.mark.parametrize("use_dictionary", [True, False])
@pytest.mark.parametrize("rows", [3, 2**14])
def test_texts_of_every_type_are_read(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    column: pa.Array,
    use_dictionary: bool,
    rows: int,
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": column}), path, use_dictionary=use_dictionary)
    monkeypatch.setattr(files, "ROWS", rows)
    assert read_table(path, ["text"]) == {"text": ["a", "", "é", "a"]}


@pytest.mark.parametrize("values", [[["a"], []], [{"a": 1}, {"a": 2}]])
def test_a_value_with_parts_is_no_text(tmp_path: Path, values: list[object]) -> None:
    pq.write_table(pa.table({"text": values}), tmp_path / "a.parquet")
    with pytest.raises(UsageError, match="in every row of 'text', and a text or a label is one"):
        read_table(tmp_path / "a.parquet", ["text"])


@pytest.mark.parametrize("label", ["²", "--5", "9" * 5000, "٣"])
def test_labels_that_only_look_like_numbers_are_names(tmp_path: Path, label: str) -> None:
    rows = [{"text": "a", "label": label}, {"text": "b", "label": "7"}] * 4
    (tmp_path / "train.jsonl").write_text("\n".join(map(json.dumps, rows)))
    task = open_task("classification", data=tmp_path, columns="text", label="label")
    assert set(task.labels) == {label, "7"}
