"""What went wrong, in one sentence, and the exit code that goes with it."""

from __future__ import annotations

import os

from cyclopts import CycloptsError, UnusedCliTokensError

from headcount.errors import HeadcountError

INTERRUPTED = 130
PIPE_CLOSED = 141  # what a shell reports for any program whose reader went away: 128 + SIGPIPE


def explain(error: BaseException) -> tuple[str, int]:
    """(sentence, exit code) for anything a command can raise."""
    match error:
        case HeadcountError():
            return str(error), error.exit_code
        case UnusedCliTokensError() if error.unused_tokens:
            return f"Too many arguments: {' '.join(error.unused_tokens)}.", 2
        case CycloptsError():
            return str(error), 2
        case KeyboardInterrupt():
            return "Interrupted.", INTERRUPTED
        case ModuleNotFoundError() if not (error.name or "").startswith("headcount"):
            return f"This needs {error.name}, which is not installed: pip install headcount", 3
        case OSError() if error.errno is not None:
            where = f" ({os.fspath(error.filename)})" if error.filename else ""
            return f"{error.strerror or os.strerror(error.errno)}{where}.", 1
    if _out_of_memory(error):
        return "Not enough memory. Try a smaller batch, a smaller --limit or another --device.", 1
    name = type(error).__name__
    return f"Unexpected {name}: {error} (run again with --debug for the whole story).", 1


def _out_of_memory(error: BaseException) -> bool:
    # torch has its own type on GPUs and a plain RuntimeError on CPUs; it is not imported for this.
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or "can't allocate memory" in str(error)
    )
