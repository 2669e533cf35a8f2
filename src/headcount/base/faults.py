"""Kills on purpose, for tests: what survives them survives a power cut.

`HEADCOUNT_KILL_AT=17` kills the process, as `kill -9` does, at the 17th of the places where it is
about to write, rename or delete something, or has just done so. `HEADCOUNT_KILL_LOG=FILE` besides
puts down which place that was, and kills only one process: the first that gets there. With
`HEADCOUNT_KILL_AT=0` nothing is killed, and every place goes into the log. Nothing happens without
them.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys

AT, LOG = "HEADCOUNT_KILL_AT", "HEADCOUNT_KILL_LOG"
_count = itertools.count(1)


def danger() -> None:
    """A place where a kill would hurt most."""
    at = os.environ.get(AT)
    if at is None:
        return
    number, log = next(_count), os.environ.get(LOG)
    if at == "0" and log is not None:
        _logged(log, os.O_APPEND)
    elif number == int(at) and (log is None or _logged(log, os.O_EXCL)):
        os.kill(os.getpid(), signal.SIGKILL)


def _logged(log: str, flag: int) -> bool:
    """Whether the place could be put down: with O_EXCL only by the first process that asks."""
    code = sys._getframe(2)
    where = f"{os.path.basename(code.f_code.co_filename)}:{code.f_code.co_name}:{code.f_lineno}"
    try:
        file = os.open(log, os.O_WRONLY | os.O_CREAT | flag, 0o644)
    except FileExistsError:
        return False
    os.write(file, f"{where}\n".encode())
    os.close(file)
    return True
