"""What every command shares: options and output.

stdout is data, stderr is talk. A command returns None or its exit code.
"""

from __future__ import annotations

import json
import logging
import math
import sys
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from headcount.base.errors import need_extra
from headcount.base.text import printable, printable_json

Json = Annotated[
    bool, Parameter(name="--json", negative=(), help="Print one JSON object instead of a table.")
]
"""Type of a command's `as_json: Json = False`."""


class _Console(Console):
    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """What is printed, without what would command the terminal; rich's own codes come later."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text, lines=True), style, control)

    def on_broken_pipe(self) -> None:
        # rich would leave with exit code 1 here; `main` knows better what to do.
        raise BrokenPipeError


def stdout() -> Console:
    """A console for text, as wide as the terminal (100 columns when there is none)."""
    return _console(100)


def _console(width: int) -> Console:
    wide = None if sys.stdout.isatty() else width
    return _Console(file=sys.stdout, width=wide, markup=False, highlight=False, emoji=False)


def say(text: str) -> None:
    """One line on stderr."""
    with suppress(OSError):  # a log on a full disk: nobody can be told, the work goes on
        sys.stderr.write(printable(text, lines=True) + "\n")
        sys.stderr.flush()


def warn(text: str) -> None:
    """A line on stderr with the program's name."""
    say(f"headcount: {text}")


class _Notes(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        warn(record.getMessage())


@contextmanager
def notes() -> Generator[None]:
    """Inside, warnings of the library go to stderr like the command's own."""
    handler, talk = _Notes(), logging.getLogger("headcount")
    if any(isinstance(other, _Notes) for other in talk.handlers):  # a command inside the demo
        yield
        return
    talk.addHandler(handler)
    try:
        yield
    finally:
        talk.removeHandler(handler)


def emit(data: object, *, as_json: bool, table: RenderableType) -> None:
    """Print `data` as one JSON object, or `table` for people, to stdout."""
    if as_json:
        text = json.dumps(plain(data), indent=2, ensure_ascii=False, allow_nan=False)
        sys.stdout.write(printable_json(text) + "\n")
    elif sys.stdout.isatty():
        stdout().print(table)
    else:
        # Into a file or a pipe: never wrapped, no blanks at the ends of lines.
        console = _console(10_000)
        with console.capture() as captured:
            console.print(table)
        lines = (line.rstrip() for line in captured.get().splitlines())
        sys.stdout.write("\n".join(lines).strip("\n") + "\n")


def plain(value: Any) -> Any:
    """`value` as JSON can hold it: no NaN, no tuples, no paths, no numpy or torch numbers.

    >>> plain({"score": float("nan"), "kept": (1, 2)})
    {'score': None, 'kept': [1, 2]}
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "to_json"):
        return plain(value.to_json())
    if is_dataclass(value):
        return plain({field.name: getattr(value, field.name) for field in fields(value)})
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):  # numpy and torch
        return plain(value.tolist())
    return [plain(item) for item in value]


def can_draw() -> bool:
    """Whether there will be figures; a missing library is reported before any work."""
    if find_spec("matplotlib") is not None:
        return True
    warn(f"There will be no figures. {need_extra('matplotlib', 'report')}")
    return False
