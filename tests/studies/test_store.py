from __future__ import annotations

from dataclasses import dataclass

import pytest

from headcount.errors import UsageError
from headcount.studies.store import RUNS, WORK, Store


@dataclass(frozen=True)
class Thing:
    name: str
    seed: int
    score: float


def opened(folder, about=None, **how) -> Store[Thing]:
    return Store(
        Thing, lambda thing: (thing.name, thing.seed), folder, about or {"task": "a"}, **how
    )


def test_what_is_done_is_there_again(tmp_path):
    first = opened(tmp_path)
    assert first.add(Thing("a", 0, 0.1)) == Thing("a", 0, 0.1)
    first.add(Thing("a", 1, 1 / 3))
    again = opened(tmp_path)
    assert again.done == first.done
    assert again.done["a", 1].score == 1 / 3


def test_a_line_that_a_kill_cut_short_is_passed_over(tmp_path):
    opened(tmp_path).add(Thing("a", 0, 0.1))
    with (tmp_path / RUNS).open("a") as file:
        file.write('{"name": "a", "se')
    opened(tmp_path).add(Thing("a", 1, 0.2))
    assert list(opened(tmp_path).done) == [("a", 0), ("a", 1)]


def test_other_settings_are_refused_unless_overwritten(tmp_path):
    opened(tmp_path).add(Thing("a", 0, 0.1))
    (tmp_path / WORK).mkdir()
    with pytest.raises(UsageError, match="task was a, now b"):
        opened(tmp_path, {"task": "b"})
    assert opened(tmp_path, {"task": "b"}, overwrite=True).done == {}
    assert not (tmp_path / WORK).exists()


def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = opened(None)
    store.add(Thing("a", 0, 0.1))
    assert list(store.done) == [("a", 0)]
    assert list(tmp_path.iterdir()) == []
