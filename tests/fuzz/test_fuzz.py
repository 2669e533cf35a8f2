"""A small share of `make fuzz`, and that the fuzzer sees what it should."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fuzz import damage, running
from fuzz.readers import READERS, Reader
from fuzz.running import Found, reader_of, run, try_many, warm_up
from headcount.base.errors import HeadcountError

SHARE = 25
"""Inputs for each reader."""


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_damaged_files_are_read_or_refused_with_one_sentence(reader: Reader) -> None:
    warm_up([reader])  # a good file is read
    found = Found()
    for _ in try_many(range(SHARE), 1, found, [reader]):
        pass
    assert [str(failure) for failure in found.failures] == []
    assert found.count == SHARE
    assert found.refused


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_what_is_no_file_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, reader: Reader) -> None:
    monkeypatch.setattr(damage, "OFTEN", 1.0)
    warm_up([reader])
    found = Found()
    for _ in try_many(range(12), 1, found, [reader]):
        pass
    assert [str(failure) for failure in found.failures] == []


def reader_that(answer: Callable[[], Any]) -> Reader:
    def write(folder: Path, rng: Random) -> Path:
        (folder / "a").write_text(str(rng.random()))
        return folder / "a"

    return Reader("one", 1, write, lambda path: answer())


def tried(answer: Callable[[], Any]) -> Found:
    found = Found()
    for _ in try_many(range(1), 0, found, [reader_that(answer)]):
        pass
    return found


def raises(error: BaseException) -> Callable[[], None]:
    def answer() -> None:
        raise error

    return answer


def spin() -> None:
    with suppress(Exception):  # as a careless reader would
        while True:
            pass


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (raises(KeyError("lost")), r"input 0 \(one\): KeyError: .*lost"),
        (raises(BaseException("panic")), "BaseException: 'panic'"),
        (raises(MemoryError()), "MemoryError"),
        (raises(HeadcountError("")), "no sentence"),
        (spin, r"more than 0\.2 s"),
        (lambda: time.sleep(60), r"or 0\.3 s of waiting"),
    ],
)
def test_what_is_no_sentence_is_seen(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[[], Any], said: str
) -> None:
    monkeypatch.setattr(running, "LIMIT", 0.2)
    monkeypatch.setattr(running, "WAIT", 0.3 if "waiting" in said else 30.0)
    (failure,) = tried(answer).failures
    assert re.search(said, str(failure))


def test_what_takes_much_memory_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    used = iter([0, running.MEMORY + 1])
    monkeypatch.setattr(running, "_most", lambda: next(used))
    (failure,) = tried(lambda: None).failures
    assert "took 512 MB" in str(failure)


def test_the_same_numbers_make_the_same_input(tmp_path: Path) -> None:
    made, single = [], [each for each in READERS if each.name in ("mask", "scores", "pattern")]
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        reader, rng = reader_of(7, 3, single)
        made.append((reader.name, reader.write(tmp_path / place, rng).read_bytes()))
    assert made[0] == made[1]


def test_several_processes_share_the_inputs() -> None:
    found = run(21, 0, 2, readers=["mask", "pattern"])
    assert found.count == 21
    assert found.failures == []
