"""Cuts as rows: what is no record of one is refused before it is used."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fuzz.readers import _record as record_of_a_cut
from headcount.base.errors import UsageError
from headcount.runs.record import Record
from headcount.studies.points import Point, require_cut


@pytest.mark.parametrize(("ratio", "right"), [(0.5, 1), ("free", 1), (None, 1), ("most", 0)])
def test_a_ratio_is_a_number_or_free(ratio: object, right: bool) -> None:
    record = Record.from_json(record_of_a_cut())
    record = replace(record, result={**record.result, "ratio": ratio})
    if right:
        require_cut(record, Path("record.json"))
        assert Point.of(record).ratio == ratio
    else:
        with pytest.raises(UsageError, match="wrong 'ratio'"):
            require_cut(record, Path("record.json"))
