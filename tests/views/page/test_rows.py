"""Which rows a score is of: by the folder of a search, else by the name of the split."""

from __future__ import annotations

from pathlib import Path

import pytest

from headcount.views.page.rows import UsedRows, rows_text, set_of
from headcount.views.page.walk import ReportItem

SEARCH = Path("found")


@pytest.mark.parametrize(
    ("path", "split", "used"),
    [
        ("found/runs/a/record.json", "train", "selection set"),  # --selection-split train
        ("found/model/record.json", "dev", "held-out set"),
        ("other/model/record.json", "dev", ""),
        ("stopped/runs/a/record.json", "dev:selection:0.5:0", "selection set"),
        ("moved/record.json", "dev:held-out:0.5:0", "held-out set"),
    ],
)
def test_the_set_of_a_record(path: str, split: str, used: str) -> None:
    item = ReportItem(kind="prune", path=Path(path), data={})
    assert UsedRows.of(split, 9, set_of(item, [SEARCH])).set == used


def test_the_name_of_a_half_is_not_for_people() -> None:
    rows = UsedRows.of("dev:held-out:0.5:0", 40)
    assert (rows.name, rows.split) == ("dev", "half of dev (held-out set)")


def test_two_sets_are_both_named() -> None:
    both = [UsedRows.of("train", 30, "selection set"), UsedRows.of("dev", 40, "held-out set")]
    words = "30 rows of train (selection set), 40 rows of dev (held-out set)"
    assert rows_text(both) == words


def test_many_sets_are_counted() -> None:
    sets = [UsedRows.of(f"part{at}", 5) for at in range(5)]
    words = "5 rows of part0, 5 rows of part1, 5 rows of part2 and 2 more sets"
    assert rows_text(sets) == words
