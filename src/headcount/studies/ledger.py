"""A study's folder: what became of every run, on disk alone, for any number of processes.

    runs/<key>/               done: record.json and what the run left; appears by one rename
    claims/<key>/             lease-000001.json: who works on it; failed-000001.json: why it failed
    work/<key>-000001/        under way, taken along by whoever takes the run over
    studies/<name>.json       which runs a study file asked for
    damaged/                  records and leases that could not be read, put aside

A run is planned, running, stale (its worker gave no sign of life), done or failed. Several studies
may share a folder: a run that two of them ask for is done once.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from headcount.base.errors import HeadcountError, UsageError
from headcount.base.faults import danger
from headcount.base.files import LOCK, cannot_write, discard, expanded, read_json, write_json
from headcount.base.header import require_header
from headcount.base.json_object import JsonDict
from headcount.runs.record import FILE
from headcount.studies.lease import NAME, Lease, is_gone, read_holder, take

RUNS, CLAIMS, WORK, STUDIES, DAMAGED = "runs", "claims", "work", "studies", "damaged"
KEY = re.compile("[0-9a-f]{16}")
"""The name of a run's folder."""
CLOCK = ".now-"
StateName = Literal["planned", "running", "stale", "done", "failed"]


@dataclass(frozen=True)
class State:
    """What became of a run."""

    name: StateName
    epoch: int = 0
    """How many workers have had it."""
    holder: Mapping[str, Any] | None = None
    """Who works on it, or did last; None where the lease is damaged."""
    failure: Mapping[str, Any] | None = None
    """Why it failed."""


PLANNED, DONE = State("planned"), State("done")


def holder_of(state: State) -> str | None:
    """Who works on a run, or did last, in words."""
    holder = state.holder
    return None if holder is None else f"process {holder['pid']} on {holder['host']}"


class Ledger:
    """The folder of one or several studies."""

    def __init__(self, folder: str | Path, lease: float = 60.0) -> None:
        self.folder, self.lease = expanded(folder).absolute(), lease

    def folder_of(self, key: str) -> Path:
        """Where a run that is done lies."""
        return self.folder / RUNS / key

    def states(self, keys: Iterable[str]) -> dict[str, State]:
        """What became of these runs: two listings for all, and one more for each under way."""
        done, claimed = _names(self.folder / RUNS), _names(self.folder / CLAIMS)
        now = self._now() if claimed else 0.0
        states = {}
        for key in keys:
            states[key] = PLANNED
            if key in done:
                states[key] = DONE
            elif key in claimed:
                states[key] = self._claimed(key, now)
        return states

    def state(self, key: str) -> State:
        """What became of one run."""
        if self.folder_of(key).exists():
            return DONE
        claimed = (self.folder / CLAIMS / key).exists()
        return self._claimed(key, self._now()) if claimed else PLANNED

    def _claimed(self, key: str, now: float) -> State:
        folder = self.folder / CLAIMS / key
        marks = [states for states in map(NAME.fullmatch, _names(folder)) if states]
        if not marks:
            return PLANNED
        epoch = max(int(mark[2]) for mark in marks)
        words = {mark[1] for mark in marks if int(mark[2]) == epoch}
        lease = self.lease_of(key, epoch)
        if "again" in words:
            return State("planned", epoch)
        holder = read_holder(lease)
        if "failed" in words:
            return State("failed", epoch, holder, _read(folder / f"failed-{epoch:06}.json"))
        try:
            age = now - lease.lstat().st_mtime
        except OSError:
            return State("planned", epoch)  # it was given back
        if age < 0:  # a clock was set back: its term begins now, unless its worker renews it
            with suppress(OSError):
                os.utime(lease)
        gone = holder is None or age > self.lease or is_gone(holder)
        return State("stale" if gone else "running", epoch, holder)

    def lease_of(self, key: str, epoch: int) -> Path:
        """The file that says who worked on a run in this epoch."""
        return self.folder / CLAIMS / key / f"lease-{epoch:06}.json"

    def _now(self) -> float:
        """The time as the disk has it: other machines' clocks may differ from ours."""
        path = self.folder / CLAIMS / f"{CLOCK}{os.getpid()}"
        try:
            path.touch()
            now = path.stat().st_mtime
            path.unlink()
        except OSError:
            return time.time()
        return now

    def claim(self, key: str, *, again: bool = False) -> Lease | None:
        """The right to work on a run; None where it is done, another's, or failed before.

        `again` takes up a run that failed.
        """
        state = self.state(key)
        if state.name in ("done", "running") or (state.name == "failed" and not again):
            return None
        lease = take(self.folder / CLAIMS / key, state.epoch + 1, self.lease)
        if lease is None:
            return None
        if self.folder_of(key).exists():  # published between our look and our lease
            self.tidy(key, lease)
            return None
        self._take_along(key, lease)
        return lease

    def work_of(self, key: str, epoch: int) -> Path:
        """Where the worker of this epoch works."""
        return self.folder / WORK / f"{key}-{epoch:06}"

    def _take_along(self, key: str, lease: Lease) -> None:
        """What the worker before has left becomes ours: its paths lead nowhere for it from now."""
        work = self.work_of(key, lease.epoch)
        try:
            for old in sorted((self.folder / WORK).glob(f"{key}-*"), key=_number, reverse=True):
                if old == work:
                    continue
                if not work.exists():
                    danger()
                    old.rename(work)
                    danger()
                    for path in work.rglob(LOCK):
                        path.unlink(missing_ok=True)  # it may be held by a process that sleeps
                else:
                    shutil.rmtree(old, ignore_errors=True)
            work.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            lease.release()
            raise cannot_write(work, error) from error

    def publish(self, key: str, lease: Lease, folder: Path) -> None:
        """Put a finished run in its place, by one rename; nothing that is there is replaced."""
        target = self.folder_of(key)
        _to_disk(folder / FILE)
        lease.require()
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            danger()
            folder.rename(target)
            danger()
        except OSError as error:
            if not target.exists():
                lease.require()  # where our folder went, in case it is gone
                raise cannot_write(target, error) from error
        self.tidy(key, lease)

    def tidy(self, key: str, lease: Lease | None = None) -> None:
        """Delete what is left of the work on a run that is done."""
        if lease is not None:
            lease.end()
        for path in (self.folder / WORK).glob(f"{key}-*"):
            danger()
            shutil.rmtree(path, ignore_errors=True)
        danger()
        shutil.rmtree(self.folder / CLAIMS / key, ignore_errors=True)

    def sweep(self, keys: Iterable[str]) -> None:
        """Delete what kills have left of runs that were published."""
        done, claimed = _names(self.folder / RUNS), _names(self.folder / CLAIMS)
        left = {name.rpartition("-")[0] for name in _names(self.folder / WORK)}
        now = self._now() if claimed else 0.0
        for key in set(keys) & done & (claimed | left):
            if self._claimed(key, now).name != "running":
                self.tidy(key)
        for name in claimed:
            if name.startswith(CLOCK):
                (self.folder / CLAIMS / name).unlink(missing_ok=True)

    def fail(self, key: str, lease: Lease, failure: Mapping[str, Any]) -> None:
        """Put down why a run failed; what it has done so far stays for another try."""
        lease.require()
        write_json(lease.folder / f"failed-{lease.epoch:06}.json", dict(failure))
        lease.end()

    def give_up(self, key: str, failure: Mapping[str, Any]) -> None:
        """Put down a failure of a run whose worker is gone."""
        state = self.state(key)
        if state.name in ("stale", "planned"):
            folder = self.folder / CLAIMS / key
            write_json(folder / f"failed-{max(1, state.epoch):06}.json", dict(failure))

    def forget(self, key: str, *, work: bool) -> None:
        """Let a failed run be tried again: from where it was, or, with `work`, from the start."""
        if self.state(key).name != "failed":
            return
        if work:
            for path in (self.folder / WORK).glob(f"{key}-*"):
                shutil.rmtree(path, ignore_errors=True)
        for path in (self.folder / CLAIMS / key).glob("failed-*.json"):
            danger()
            # the epoch stays, so that nobody who had the run before takes it for his
            path.replace(path.with_name(path.name.replace("failed", "again")))

    def discard(self, key: str) -> None:
        """Delete a run, and what there is of the work on it."""
        if not KEY.fullmatch(key):
            raise UsageError(f"'{key}' is no run of {self.folder}.")
        discard(self.folder_of(key))
        self.tidy(key)

    def record(self, key: str) -> JsonDict:
        """The record of a run that is done, as it is in its file."""
        data = read_json(self.folder_of(key) / FILE, "record")
        where = str(self.folder_of(key) / FILE)
        require_header(data, where)
        if "run" not in data:
            raise UsageError(f"{where} is damaged: it does not say what was run.")
        return data

    def put_aside(self, key: str) -> Path:
        """Move a run whose record cannot be read out of the way."""
        return self._put_aside(key, self.folder_of(key))

    def put_lease_aside(self, key: str, epoch: int) -> Path:
        """Move a lease that cannot be read out of the way; its number is not given again."""
        lease = self.lease_of(key, epoch)
        (lease.parent / f"again-{epoch:06}.json").touch()
        return self._put_aside(key, lease)

    def _put_aside(self, key: str, path: Path) -> Path:
        aside = self.folder / DAMAGED
        try:
            aside.mkdir(parents=True, exist_ok=True)
            number = sum(name.startswith(key) for name in _names(aside))
            target = aside / f"{key}-{number}"
            danger()
            path.rename(target)
        except OSError as error:
            raise cannot_write(aside, error) from error
        return target


def _number(path: Path) -> tuple[int, str]:
    return len(path.name), path.name


def _names(folder: Path) -> set[str]:
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()


def _read(path: Path) -> JsonDict | None:
    """A small file that may be half written."""
    with suppress(HeadcountError, OSError):
        data = read_json(path, "claim")
        return data if isinstance(data, dict) else None
    return None


def _to_disk(path: Path) -> None:
    """What is in a file survives a power cut from here on."""
    with suppress(OSError):
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)
