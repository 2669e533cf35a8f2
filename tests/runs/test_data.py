from __future__ import annotations

from headcount.runs.data import given_rows, used_inputs, used_rows
from headcount.tasks.encoding import EncodedRows, rows_fingerprint


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
