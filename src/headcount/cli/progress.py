"""Progress: a bar on a terminal; elsewhere a plain line now and then.

`alive` is around every command. A command reports its progress through `bar`, `progress`, `waiting`
or `talk`; where stderr is no terminal, the last of it is repeated in one line every half a minute.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TypeVar

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TimeRemainingColumn, track

from headcount.cli.common import say

Item = TypeVar("Item")

EVERY = 30.0
"""Seconds between two lines."""
COUNTED = re.compile(r", \d+ of \d+$")
REPORTER = "headcount reporter"
"""Name of the thread that prints the lines."""


@dataclass
class Activity:
    """What is being done; set by the command, read by the thread that prints it."""

    command: str = ""
    words: Sequence[str] = ()
    """The whole command line, for the record."""
    text: str = ""
    since: float = field(default_factory=time.monotonic)

    def line(self) -> str:
        """`headcount prune, 2:30 so far: fine-tuning, 120 of 3000`."""
        minutes, seconds = divmod(int(time.monotonic() - self.since), 60)
        at = f": {self.text}" if self.text else ""
        if len(_doing) > 1:  # inside the demo, which says the command itself
            return f"   … {self.command}, {minutes}:{seconds:02}{at}"
        return f"headcount {self.command}, {minutes}:{seconds:02} so far{at}"


_doing: list[Activity] = []  # a command may run others, as the demo does: the last one counts


@contextmanager
def alive(command: str, words: Sequence[str] = ()) -> Generator[None]:
    """Around a command: lines on stderr while it runs, unless a terminal shows bars."""
    _doing.append(Activity(command, words))
    stop = threading.Event()
    reporter = threading.Thread(target=_report, args=(stop,), name=REPORTER, daemon=True)
    # of several processes the first reports for all; a command inside another has one already
    reports = not sys.stderr.isatty() and os.environ.get("RANK", "0") == "0" and len(_doing) == 1
    if reports:
        reporter.start()
    try:
        yield
    finally:
        _doing.pop()
        stop.set()
        if reports:
            reporter.join()


def _report(stop: threading.Event) -> None:
    while not stop.wait(EVERY):
        for doing in _doing[-1:]:
            say(doing.line())


def typed_words() -> list[str] | None:
    """The words of the command that is running, the innermost one; None outside of any."""
    return list(_doing[-1].words) if _doing else None


def _note(text: str) -> None:
    if _doing:
        _doing[-1].text = text


def talk(text: str) -> None:
    """What comes next in a run of several parts: a line of its own on a terminal.

    A text that ends with how much is done, `recover, 3 of 12`, is no new part.
    """
    _note(text)
    if sys.stderr.isatty() and len(_doing) < 2 and not COUNTED.search(text):
        say(f"headcount: {text}")


@contextmanager
def waiting(text: str) -> Generator[Callable[[], None]]:
    """Something that cannot be counted; the function takes the sign off a terminal early."""
    _note(text)
    status = Console(stderr=True).status(text) if sys.stderr.isatty() else None
    with status or nullcontext():
        yield status.stop if status else lambda: None


def progress(
    items: Iterable[Item], description: str, *, total: float | None = None
) -> Iterator[Item]:
    """Go over `items` with a bar on stderr, shown only when stderr is a terminal."""
    shown = items
    if sys.stderr.isatty():  # a bar that is switched off still ends its line in older rich
        console = Console(stderr=True)
        shown = track(items, description, total=total, console=console, transient=True)
    for done, item in enumerate(shown):
        _note(_counted(description, done, total))
        yield item


@contextmanager
def bar(text: str) -> Generator[Callable[..., None]]:
    """A progress bar on stderr, in a terminal only: `report(done, total, what else to say)`."""
    _note(text)
    if not sys.stderr.isatty():
        yield lambda done, total, more="": _note(_counted(text, done, total) + more)
        return
    columns = [*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn()]
    with Progress(SpinnerColumn(), *columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(text, total=None)

        def report(done: int, total: int | None, more: str = "") -> None:
            _note(_counted(text, done, total) + more)
            shown.update(task, completed=done, total=total, description=text + more)

        yield report


def _counted(text: str, done: int, total: float | None) -> str:
    return f"{text}, {done}" + ("" if total is None else f" of {total:.0f}")
