"""Files and folders under way: held by the process that fills them, swept when it was killed."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def begun(path: Path, make: Callable[[], Path]) -> Generator[Path]:
    """What `make` makes, held while it is filled and deleted where it is still there after.

    What a killed process left of the same file or folder nobody holds: it is deleted before.
    """
    sweep(path)
    while True:
        partial = make()
        lock = _lock(partial, wait=True)
        if lock is None or partial.exists():
            break
        os.close(lock)  # taken for a dead one's before it was held
    try:
        yield partial
    finally:
        _delete(partial)
        if lock is not None:
            os.close(lock)


def sweep(path: Path) -> None:
    """Delete what is left of this file or folder and held by no process."""
    file = re.escape(f".{path.stem}.") + r"\d+\.partial" + re.escape(path.suffix)
    folder = re.escape(f".{path.name}.") + r"\w{8}\.partial"
    try:
        beside = os.listdir(path.parent)
    except OSError:
        return
    for name in beside:
        if re.fullmatch(f"{file}|{folder}", name):
            lock = _lock(path.with_name(name))
            if lock is not None:
                _delete(path.with_name(name))
                os.close(lock)


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _lock(path: Path, *, wait: bool = False) -> int | None:
    """Hold a file or folder; None where another process does, or where that cannot be done."""
    try:
        import fcntl  # not on Windows

        lock = os.open(path, os.O_RDONLY)
    except (ImportError, OSError):
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(lock)
        return None
    return lock
