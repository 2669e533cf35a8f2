"""Text from files, names and tokenizers, made safe to show: it commands no terminal.

What is escaped: control characters, line and paragraph separators, marks that turn the direction
of writing, halves of characters, and what XML forbids.
"""

from __future__ import annotations

import re
import reprlib
import shlex
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

LINE = 100
"""Characters of the longest `repr` of a result."""

_SPECIAL = (
    *range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F),
    *range(0x2066, 0x206A), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF,
)  # fmt: skip
_SHOWN = {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in _SPECIAL}
_LINES = {code: text for code, text in _SHOWN.items() if chr(code) not in "\n\t"}
_JSON = {code: f"\\u{code:04x}" for code in _SPECIAL if chr(code) != "\n"}


def printable(text: str, *, lines: bool = False) -> str:
    """The text with what is no plain character written out; with `lines`, line ends stay.

    >>> printable("red: \\x1b[31m")
    'red: \\\\x1b[31m'
    """
    return text.translate(_LINES if lines else _SHOWN)


def short(value: object, most: int = 80) -> str:
    """A value as Python writes it, cut off where it becomes long or deep.

    >>> short("a" * 100, 20)
    "'aaaaaaaaaaaaaaaa..."
    """
    text = _BRIEF.repr(value)
    return text if len(text) <= most else text[: most - 3] + "..."


def line(*ways: str, most: int = LINE) -> str:
    """The first way of saying it that fits a line; when none does, the last one, cut.

    >>> line("Layout(many many words)", "Layout(few words)", most=17)
    'Layout(few words)'
    >>> line("Layout(many many words)", most=17)
    'Layout(many m...)'
    """
    shown = [printable(way) for way in ways]
    last = shown[-1]
    cut = f"{last[: most - 4].rstrip()}...{last[-1:]}"
    return next((way for way in shown if len(way) <= most), cut)


def minus(text: str) -> str:
    """A number's hyphen as the sign that it is.

    >>> minus("-0.02 [-0.04, +0.01]")
    '−0.02 [−0.04, +0.01]'
    """
    return text.replace("-", "\N{MINUS SIGN}")


def duration(seconds: float) -> str:
    """A time as people say it.

    >>> duration(0.4), duration(250), duration(3 * 3600 + 125)
    ('0 s', '4 min 10 s', '3 h 2 min')
    """
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if minutes else f"{rest} s"
    return f"{minutes // 60:,} h {minutes % 60} min"


def as_fast(speedup: Mapping[str, Any]) -> str:
    """A measured speedup with its interval, the one way it is said everywhere.

    >>> as_fast({"value": 1.27, "low": 1.22, "high": 1.31})
    '1.27 × as fast [1.22, 1.31]'
    >>> as_fast({"median": 1.02, "low": 0.9, "high": 1.2})
    '1.02 × as fast [0.90, 1.20] (no measurable difference)'
    """
    value = speedup["value"] if "value" in speedup else speedup["median"]
    low, high = speedup["low"], speedup["high"]
    unsure = " (no measurable difference)" if low <= 1 <= high else ""
    return f"{value:.2f} × as fast [{low:.2f}, {high:.2f}]{unsure}"


def lasting(seconds: float) -> str:
    """A time as people say it.

    >>> lasting(0.3), lasting(42.4), lasting(200), lasting(7500)
    ('1 s', '42 s', '3 min 20 s', '2 h 5 min')
    """
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def without_paths(command: str) -> str:
    """A command with only the last part of every path that is this machine's.

    >>> without_paths("headcount prune /home/me/run --out=~/half --data glue/mrpc")
    'headcount prune run --out=half --data glue/mrpc'
    """

    def short(word: str) -> str:
        option, sign, value = word.partition("=") if word.startswith("-") else ("", "", word)
        if value.startswith(("/", "~", "../")):
            value = PurePath(value).name or value
        return f"{option}{sign}{value}"

    try:
        words = shlex.split(command)
    except ValueError:
        # no shell would take it either: a quote is left open
        return re.sub(r"(?<![\w.])(/|~|\.\./)\S*/", "", command)
    return shlex.join(map(short, words))


_BRIEF = reprlib.Repr()
_BRIEF.maxstring = _BRIEF.maxother = _BRIEF.maxlong = 200
_BRIEF.maxdict = _BRIEF.maxlist = _BRIEF.maxtuple = _BRIEF.maxlevel = 20


def printable_json(text: str) -> str:
    """A JSON text, indented or not, that holds the same and can be shown."""
    return text.translate(_JSON)
