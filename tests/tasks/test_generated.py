from __future__ import annotations

import pytest

from headcount.base.errors import UsageError
from headcount.tasks import open_task
from headcount.tasks.pocket import POCKET_TASKS, examples


@pytest.mark.parametrize("name", POCKET_TASKS)
def test_rows_are_the_pocket_worlds(name: str) -> None:
    task = open_task(name, size=12)
    rows = task.load("train")
    want = examples(name, "train", 12)
    assert len(rows) == 12
    for place, field in enumerate(task.texts):
        assert list(rows.texts[place]) == [row[field] for row in want]
    if task.labels:
        assert rows.labels is not None
        assert max(rows.labels) < len(task.labels)


def test_rows_that_somebody_changed_are_made_as_ever() -> None:
    task = open_task("pocket-sentiment", size=3)
    first = task.load("train")
    assert first.labels is not None
    kept = [list(first.texts[0]), first.labels.tolist()]
    first.texts[0][0] = "changed"  # type: ignore[index]
    first.labels[0] = 7
    again = task.load("train")
    assert again.labels is not None
    assert [list(again.texts[0]), again.labels.tolist()] == kept


def test_sizes() -> None:
    assert len(open_task("pocket-sentiment", size=7).load("dev")) == 1000
    with pytest.raises(UsageError, match="at least one row"):
        open_task("pocket-sentiment", size=0)


@pytest.mark.parametrize("given", [{"data": "x"}, {"columns": ("text",)}, {"hub": "a/b"}])
def test_rows_of_ones_own_are_refused(given):
    with pytest.raises(UsageError, match="makes its own rows"):
        open_task("pocket-sentiment", **given)
