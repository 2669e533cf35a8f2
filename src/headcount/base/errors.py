"""Every way headcount says no: one clear sentence and the exit code that goes with it.

An error says what was asked, what was found and what to do. The command line prints the
sentence and leaves with `exit_code`; a library user catches `HeadcountError`.
"""

from __future__ import annotations

import errno
import re
import traceback
from collections.abc import Sequence

from headcount.base.text import printable

MOST = 1000
"""Characters of a message; what a file brings into it may be longer."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
WROTE_LESS = re.compile(
    "No space left|Disk quota exceeded|File too large|StorageFull|FileTooLarge|file write failed|"
    r"\d+ requested and \d+ written"
)
"""A full disk in the words of libraries that raise errors of their own for it."""


class HeadcountError(Exception):
    """Base of all errors headcount raises on purpose."""

    exit_code = 1
    most = MOST
    mistakes: Sequence[tuple[tuple[str, ...], str]] = ()
    """The parts that are wrong, by the way to each, where more than one can be."""

    def __str__(self) -> str:
        """One line without control characters, whatever a file or a name brought into it."""
        text = printable(super().__str__())
        return text if len(text) <= self.most else f"{text[: self.most - 200]} ... {text[-200:]}"


class UsageError(HeadcountError, ValueError):
    """The caller asked for something that makes no sense: a wrong name, range or combination."""

    exit_code = 2


class MissingExtraError(HeadcountError, ImportError):
    """An optional dependency is not installed; the message is the pip command."""

    exit_code = 3


class NotFoundError(HeadcountError, LookupError):
    """A model, a file or a data set is not there or cannot be read."""

    exit_code = 4


class UnsupportedError(HeadcountError):
    """The architecture is not one headcount can work on; the message names it and says why."""

    exit_code = 5


class StudyError(HeadcountError):
    """Part of a study failed; what finished is kept."""

    exit_code = 6


def need_extra(module: str, extra: str) -> MissingExtraError:
    """The error for a missing optional module, with the command that installs it."""
    return MissingExtraError(
        f"This needs {module}, which is not installed: pip install 'headcount[{extra}]'"
    )


def disk_is_full(error: BaseException | None, *, quoted: bool = False) -> bool:
    """Whether this error, or one that it came from, is a disk or a quota that is full.

    With `quoted` also where headcount's own message quotes what another process wrote; without, a
    user's text is never taken for a full disk.
    """
    while error is not None:
        if isinstance(error, OSError) and error.errno in FULL:
            return True
        if (quoted or not isinstance(error, HeadcountError)) and WROTE_LESS.search(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


def in_words(error: BaseException, most: int = 160) -> str:
    """An error of somebody else's in a line; where it says nothing, the code that raised it."""
    message = " ".join(str(error).split())
    if not message:
        frames = traceback.extract_tb(error.__traceback__)
        message = f"{frames[-1].line} in {frames[-1].name}" if frames else ""
    return f"{type(error).__name__}: {message}"[:most]
