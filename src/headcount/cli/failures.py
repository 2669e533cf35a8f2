"""What went wrong, in one sentence, and the exit code that goes with it."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from cyclopts import CoercionError, CycloptsError, MissingArgumentError, Token, UnusedCliTokensError

from headcount.base.errors import HeadcountError, disk_is_full
from headcount.base.extras import CORE
from headcount.base.text import printable
from headcount.studies.written import StudyFileError

PACKAGES = {module: name for name, module in CORE.items()}
INTERRUPTED = 130
LINES = 100
"""Mistakes of a study file that are shown, one a line."""
ADVICE = "Free some space or write elsewhere, and run the same command again."
NAMED: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "yes or no",
    Path: "a path",
}
PIPE_CLOSED = 141  # what a shell reports for any program whose reader went away: 128 + SIGPIPE


def explain(error: BaseException) -> tuple[str, int]:
    """(sentence, exit code) for anything a command can raise."""
    if disk_is_full(error):
        return f"{_unwritten(error)} {ADVICE}", 1
    match error:
        case StudyFileError() if len(error.several) > 1:
            left = len(error.several) - LINES
            more = [f"and {left} more"] if left > 0 else []
            return "\n  ".join(map(printable, [error.text, *error.several[:LINES], *more])), 2
        case HeadcountError():
            return str(error), error.exit_code
        case UnusedCliTokensError() if error.unused_tokens:
            return f"Too many arguments: {' '.join(error.unused_tokens)}.", 2
        case MissingArgumentError() if error.argument and "Did you mean" not in str(error):
            return _missing(error, error.argument.name), 2
        case CoercionError() if error.token is not None and error.msg is None:
            return _unlike(error, error.token) or str(error), 2
        case CycloptsError():
            return str(error), 2
        case KeyboardInterrupt():
            return "Interrupted.", INTERRUPTED
        case ModuleNotFoundError() if not (error.name or "").startswith("headcount"):
            package = PACKAGES.get(error.name or "", error.name)
            return f"This needs {error.name}, which is not installed: pip install {package}", 3
        case OSError() if error.errno is not None:
            where = f" ({os.fspath(error.filename)})" if error.filename else ""
            return f"{error.strerror or os.strerror(error.errno)}{where}.", 1
    if _out_of_memory(error):
        return "Not enough memory. Try a smaller batch, a smaller --limit or another --device.", 1
    name = type(error).__name__
    return f"Unexpected {name}: {error} (run again with --debug for the traceback).", 1


def _missing(error: MissingArgumentError, name: str) -> str:
    """What a command was not told."""
    if error.keyword is not None:
        return f"{error.keyword} needs a value."
    command = " ".join(error.command_chain or ())
    return f"{command} needs {name}: see headcount {command} --help."


def _unlike(error: CoercionError, token: Token) -> str | None:
    """What an option is, and what was typed; None where it is one of several words."""
    if get_origin(error.target_type) is Literal:
        return None
    name = token.keyword or (error.argument.name if error.argument is not None else "This")
    return f"{name} is {_in_words(error.target_type)}, not '{token.value}'."


def _in_words(kind: object) -> str:
    """A type as those know it who do not write Python.

    >>> _in_words(float | Literal["free"] | None)
    'a number or free'
    """
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(_in_words(one) for one in get_args(kind) if one is not type(None))
    if get_origin(kind) is Literal:
        return " or ".join(map(str, get_args(kind)))
    return NAMED.get(kind, "something else")


def _unwritten(error: BaseException) -> str:
    """What could not be written, as one sentence."""
    if isinstance(error, HeadcountError) and str(error).startswith("Cannot write"):
        return str(error)
    name = getattr(error, "filename", None)
    where = f" ({os.fspath(name)})" if name else ""
    reason = getattr(error, "strerror", None) or os.strerror(errno.ENOSPC)
    return f"Cannot write: {reason}{where}."


def _out_of_memory(error: BaseException) -> bool:
    # torch has its own type on GPUs and a plain RuntimeError on CPUs; it is not imported for this.
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or "can't allocate memory" in str(error)
    )
