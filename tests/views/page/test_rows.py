"""Which rows a score is of: by the folder of a search, else by the name of the split."""

from __future__ import annotations

from pathlib import Path

import pytest

from headcount.views.page.rows import rows_said, set_of, several
from headcount.views.page.walk import ReportItem

SEARCH = Path("found")


@pytest.mark.parametrize(
    ("path", "split", "used"),
    [
        ("found/runs/a/record.json", "train", "selection set"),  # --choose-split train
        ("found/model/record.json", "dev", "held-out set"),
        ("other/model/record.json", "dev", ""),
        ("stopped/runs/a/record.json", "dev:chosen:0.5:0", "selection set"),
        ("moved/record.json", "dev:scored:0.5:0", "held-out set"),
    ],
)
def test_the_set_of_a_record(path: str, split: str, used: str) -> None:
    item = ReportItem(kind="prune", path=Path(path), data={})
    assert set_of(item, split, [SEARCH]) == used


def test_two_sets_are_both_said() -> None:
    one = {"split": "train", "n": 30, "set": "selection set"}
    other = {"split": "dev", "n": 40, "set": "held-out set"}
    said = rows_said([one, other])
    assert said == "30 rows of train (selection set), 40 rows of dev (held-out set)"
    assert (several([one, other]), several([one, one])) == (True, False)


def test_many_sets_are_counted() -> None:
    sets = [{"split": f"part{at}", "n": 5} for at in range(5)]
    said = "5 rows of part0, 5 rows of part1, 5 rows of part2 and 2 more sets"
    assert rows_said(sets) == said
