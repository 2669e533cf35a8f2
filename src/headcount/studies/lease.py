"""Who works on a run: a lease file with a heartbeat and an epoch.

A lease is a file `lease-000003.json` that only one process can make; the number is its epoch. While
its worker lives, the file's time is renewed. One that was not renewed for long, or whose process is
gone, is taken over with the next epoch, and whoever comes back from the dead with an older one
finds that out before it publishes anything.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from headcount.base.errors import HeadcountError
from headcount.base.faults import danger
from headcount.base.files import cannot_write, read_json, require_fields
from headcount.base.json_object import JsonDict

NAME = re.compile(r"(lease|failed|again)-([0-9]{6,12})\.json")
HOLDER: JsonDict = {
    "host": str,
    "machine": str,
    "pid": int,
    "began": float | None,
    "job": list | None,
}
"""What a lease says of its holder."""


class LostLeaseError(HeadcountError):
    """Another worker has taken the run over."""


@cache
def machine() -> str:
    """This machine since it was started, and who sees whose processes on it."""
    parts = [os.uname().nodename]
    for path in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        with suppress(OSError):
            parts.append(os.readlink(path) if "ns" in path else Path(path).read_text().strip())
    return " ".join(parts)


def me() -> JsonDict:
    """Who asks for a lease."""
    slurm = os.environ.get("SLURM_JOB_ID")
    job = None
    if slurm is not None:
        job = [slurm, os.environ.get("SLURM_RESTART_COUNT", "0")]
    return {
        "host": os.uname().nodename,
        "machine": machine(),
        "pid": os.getpid(),
        "began": _began(os.getpid()),
        "job": job,
        "taken": time.time(),
    }


def _began(pid: int) -> float | None:
    """When a process began; None where there is none of this number."""
    import psutil

    try:
        process = psutil.Process(pid)
        # a dead one that nobody has asked for yet has a number still
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.Error:
        return None


def read_holder(path: Path) -> JsonDict | None:
    """Who holds the lease in this file; None where it is damaged or gone."""
    try:
        data = read_json(path, "lease")
        require_fields(data, HOLDER, "")
    except HeadcountError:
        return None
    job = data["job"] or ["", ""]
    return data if 0 < data["pid"] < 2**31 and len(job) == 2 else None


def is_gone(holder: Mapping[str, Any]) -> bool:
    """Whether the process that holds a lease is known to have ended."""
    if holder["machine"] == machine():
        began = _began(holder["pid"])
        return began is None or abs(began - (holder["began"] or 0)) > 2
    job, mine = holder["job"], me()["job"]
    # a job that was put back into the queue is here again: it ran before and does not any more
    return bool(job and mine and job[0] == mine[0] and job[1] != mine[1])


@dataclass(kw_only=True)
class Lease:
    """The right to work on one run, for as long as it is renewed."""

    folder: Path
    """Of the claims on this run."""
    epoch: int
    seconds: float
    """After which, without a sign of life, another one may take over."""
    _stop: threading.Event = field(default_factory=threading.Event, repr=False)
    _thread: threading.Thread | None = field(default=None, repr=False)

    @property
    def path(self) -> Path:
        """The lease's file."""
        return self.folder / f"lease-{self.epoch:06}.json"

    def begin(self) -> Lease:
        """Renew it from now on, in a thread of its own."""
        self._thread = threading.Thread(target=self._beat, name="headcount lease", daemon=True)
        self._thread.start()
        return self

    def _beat(self) -> None:
        while not self._stop.wait(max(0.05, self.seconds / 6)):
            with suppress(OSError):
                os.utime(self.path)

    @property
    def mine(self) -> bool:
        """Whether nobody has taken the run over."""
        holder = [int(part[2]) for part in map(NAME.fullmatch, _listed(self.folder)) if part]
        return bool(holder) and max(holder) == self.epoch and self.path.exists()

    def require(self) -> None:
        """Refuse to go on with a run that is another worker's by now."""
        if not self.mine:
            raise LostLeaseError(
                f"{self.folder.name} was taken over by another worker: this one gave no sign of "
                f"life for {self.seconds:g} seconds."
            )

    def end(self) -> None:
        """Renew it no more."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def release(self) -> None:
        """Give the run back; one from whom it was taken over finds that out all the same."""
        self.end()
        danger()
        with suppress(OSError):
            if self.epoch == 1:
                self.path.unlink(missing_ok=True)
            else:
                self.path.replace(self.folder / f"again-{self.epoch:06}.json")


def take(folder: Path, epoch: int, seconds: float) -> Lease | None:
    """The lease of this epoch; None where another process was quicker."""
    lease = Lease(folder=folder, epoch=epoch, seconds=seconds)
    data = folder / f".lease-{os.getpid()}-{threading.get_ident()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        danger()
        data.write_text(json.dumps(me()), encoding="utf-8")
        danger()
        os.link(data, lease.path)  # it appears with its holder, and only where there is none
        danger()
    except FileExistsError:
        return None
    except OSError as error:
        raise cannot_write(folder, error) from error
    finally:
        with suppress(OSError):
            data.unlink(missing_ok=True)
    return lease.begin()


def _listed(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
