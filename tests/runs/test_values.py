"""Values are named by what is in them, whatever they are."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from datasets import Dataset
from torch.utils.data import DataLoader

import headcount as hc
from headcount.likeness.result import Measurement, Redundancy
from headcount.runs.values import content, given_rows, told, used_inputs, used_rows
from headcount.tasks.encoding import EncodedRows, rows_fingerprint


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


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["a", "b"], ["astrb"]),
        ([["a"], "b"], [["a", "b"]]),
        ({"a": 1}, {"a": "1"}),
        (np.float32(1), np.float64(1)),
        ({1, 2}, {1, 3}),
        (Path("a"), Path("b")),
        (hc.Cluster(redundancy=(Path("a.npz"),)), hc.Cluster(redundancy=(Path("b.npz"),))),
        (hc.Calibration(rows=["a"]), hc.Calibration(rows=["b"])),
        (DataLoader([1, 2], batch_size=2), DataLoader([1, 3], batch_size=2)),
        (Dataset.from_dict({"text": ["a"]}), Dataset.from_dict({"text": ["b"]})),
        (complex(1, 2), complex(1, 3)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_differs_has_another_name(one, other):
    assert content(one) == content(copy.deepcopy(one)) != content(other)


def test_a_matrix_is_more_than_its_summary():
    def matrix(first: float, second: float) -> Redundancy:
        values = np.zeros((3, 3), np.float32)
        values[0, 1] = values[1, 0] = first
        values[0, 2] = values[2, 0] = second
        measured = Measurement(values, np.zeros((3, 3), np.float32))
        layout = hc.Layout.of(encoder=[3])
        return Redundancy(
            layout=layout, measured={("encoder", "js"): measured}, count=1, provenance={}
        )

    assert content(matrix(0.1, 0.2)) == content(matrix(0.1, 0.2)) != content(matrix(0.2, 0.1))


def rows(count: int) -> EncodedRows:
    return EncodedRows(columns={"input_ids": [[1, 2, 3]] * count})


def test_rows_of_a_split_are_known_by_their_number_and_a_fingerprint():
    assert used_rows("512 rows 0a1b", "train", 3)["n"] == 512
    assert used_inputs(rows(3), "random")["fingerprint"] in rows_fingerprint(rows(3))


def test_rows_that_came_with_the_call_are_given():
    assert given_rows(rows(2))["split"] == "given"
    assert given_rows([{"input_ids": 1}] * 4) == {
        "split": "given", "n": 4, "seed": None, "fingerprint": None
    }  # fmt: skip
    assert given_rows(iter(()))["n"] is None
