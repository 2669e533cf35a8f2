"""Where stderr is no terminal, a long command still says now and then what it is at."""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Callable
from typing import Any

import pytest

from headcount.base.registry import Registry
from headcount.cli import main, progress


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """`said(words)` waits for a line with these words, told every hundredth of a second."""
    lines: list[str] = []
    more = threading.Condition()

    def say(text: str) -> None:
        with more:
            lines.append(text)
            more.notify_all()

    def wait(words: str) -> None:
        with more:
            assert more.wait_for(lambda: any(words in line for line in lines), 30), lines

    monkeypatch.setattr(progress, "EVERY", 0.01)
    monkeypatch.setattr(progress, "say", say)
    return wait


def command(monkeypatch: pytest.MonkeyPatch, function: Callable[[], None], name: str) -> None:
    module = types.ModuleType("headcount_slow")
    module.__dict__["run"] = function
    monkeypatch.setitem(sys.modules, "headcount_slow", module)
    registry = Registry("command")
    registry.add(name, "headcount_slow:run", "x")
    monkeypatch.setattr(main, "COMMANDS", registry)


def test_a_command_that_says_nothing_is_spoken_for(
    cli: Any, said: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    command(monkeypatch, lambda: said("headcount slow, 0:0"), "slow")
    assert cli("slow").code == 0
    assert all(thread.name != progress.REPORTER for thread in threading.enumerate())


def test_what_it_is_at_is_told(
    cli: Any, said: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow() -> None:
        with progress.waiting("loading"):
            said("so far: loading")
        progress.talk("cutting")
        said("so far: cutting")
        for _ in progress.progress(iter("ab"), "timing", total=2):
            said("so far: timing, 0 of 2")
        with progress.bar("training") as report:
            report(7, 2_000_000, ", loss 0.3")
            said("so far: training, 7 of 2000000, loss 0.3")
            report(8, None)
            said("so far: training, 8")

    command(monkeypatch, slow, "slow")
    assert cli("slow").code == 0


def test_a_command_inside_another_is_named(
    cli: Any, said: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def outer() -> None:
        with progress.alive("inner"):
            said("… inner,")
        said("headcount outer,")

    command(monkeypatch, outer, "outer")
    assert cli("outer").code == 0


@pytest.mark.parametrize("why", ["a terminal", "another process"])
def test_nobody_is_told_twice(monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    if why == "a terminal":
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    else:
        monkeypatch.setenv("RANK", "1")
    with progress.alive("x"):
        assert all(thread.name != progress.REPORTER for thread in threading.enumerate())


def test_on_a_terminal_how_much_is_done_is_no_line_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines: list[str] = []
    monkeypatch.setattr(progress, "say", lines.append)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress.alive("x"):
        for text in ("repair: recover", "repair: recover, 1 of 2", "trying 3 of 9 heads"):
            progress.talk(text)
    assert lines == ["headcount: repair: recover", "headcount: trying 3 of 9 heads"]


def test_an_ordinary_command_stays_silent(cli: Any) -> None:
    assert cli("ls", "tasks").err == ""
