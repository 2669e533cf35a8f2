from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.heads import read_counts, write_counts


@given(st.lists(st.integers(0, 30), max_size=14))
def test_counts_read_back(counts: list[int]) -> None:
    assert read_counts(write_counts(counts)) == counts


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("777322", [7, 7, 7, 3, 2, 2]),
        ("12x8", [8] * 12),
        ("1x12", [12]),
        ("12", [1, 2]),
        ("1,2", [1, 2]),
        ("12,", [12]),
        ("12,10,7", [12, 10, 7]),
        ("12,10,7,", [12, 10, 7]),
        ("0", [0]),
        ("", []),
    ],
)
def test_ways_to_write_counts(text: str, counts: list[int]) -> None:
    assert read_counts(text) == counts
