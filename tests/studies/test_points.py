"""Cuts as rows: what is no record of one is refused before it is used."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.readers import _record as record_of_a_cut
from headcount.base.errors import UsageError
from headcount.runs.record import Record
from headcount.studies.points import Point, require_cut


@pytest.mark.parametrize(("ratio", "right"), [(0.5, 1), ("free", 1), (None, 1), ("most", 0)])
def test_a_ratio_is_a_number_or_free(ratio: object, right: bool) -> None:
    data = record_of_a_cut() | {"ratio": ratio}
    if right:
        record = Record.from_json(data)
        require_cut(record, Path("record.json"))
        assert Point.of(record).ratio == ratio
    else:
        with pytest.raises(UsageError, match="is damaged: ratio: 'most' is not"):
            Record.from_json(data)


@pytest.mark.parametrize("damage", [{"scores": None}, {"heads": {"before": 0, "after": 0}}])
def test_a_cut_without_scores_or_heads_is_refused(damage: dict[str, object]) -> None:
    heads = {"heads": {"before": 0, "after": 0, "kept": ""}} if "heads" in damage else damage
    record = Record.from_json(record_of_a_cut() | heads)
    with pytest.raises(UsageError, match=r"record\.json is no record of a pruning, or is damaged"):
        require_cut(record, Path("record.json"))
