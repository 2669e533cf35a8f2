"""The header of every JSON file."""

from __future__ import annotations

import pytest

from headcount.base.errors import UsageError
from headcount.base.header import FormatError, header, require_header


def test_what_has_a_header_is_taken():
    data = header("mask") | {"kept": {}}
    assert require_header(data, "mask.json") is data


@pytest.mark.parametrize(
    "data",
    [
        [],
        None,
        {},
        {"format": 1, "kind": "prune"},
        header("x") | {"kind": 3},
        header("x") | {"version": "1"},
    ],
)
def test_what_has_none_is_no_file_of_headcount(data: object):
    with pytest.raises(UsageError, match=r"a\.json is no record of headcount"):
        require_header(data, "a.json")


def test_another_version_is_told_by_its_number():
    with pytest.raises(FormatError, match="has version 2, and this headcount reads 1"):
        require_header(header("prune") | {"version": 2}, "a.json")
