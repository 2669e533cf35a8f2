"""One damaged input after the other, in this process or in several.

Every input is known by two numbers, the seed and its own, and is the same each time. It must be
read or refused with one sentence (a HeadcountError) within LIMIT seconds of work and MEMORY bytes.
"""

from __future__ import annotations

import copy
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty
from random import Random
from typing import Any

from fuzz.readers import READERS, Reader
from fuzz.trees import Gentle
from headcount.base.errors import HeadcountError

LIMIT = 5.0
"""Seconds of processor time that one input may take."""
WAIT = 30.0
"""Seconds that it may take by the clock: a pipe that nobody writes to costs no processor time."""
SILENCE = 60.0
"""Seconds after which a process that says nothing is ended: it waits, or cannot be interrupted."""
MEMORY = 512 * 2**20
"""Bytes by which one input may raise the most that its process ever took."""


class Hang(BaseException):
    """An input that takes too long; no reader's `except Exception` catches it."""


@dataclass(frozen=True)
class Failure:
    """An input that was answered with something else than a value or one sentence."""

    number: int
    reader: str
    what: str
    where: str = ""

    def __str__(self) -> str:
        return (
            f"input {self.number} ({self.reader}): {self.what}{self.where and ' at '}{self.where}"
        )


@dataclass
class Found:
    """What came out of many inputs."""

    read: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    seconds: Counter[Any] = field(default_factory=Counter)
    """Processor time by reader."""
    slowest: tuple[float, int, str] = (0.0, 0, "")
    memory: int = 0
    """The largest growth of one process by one input, in bytes."""

    @property
    def count(self) -> int:
        """How many inputs were tried."""
        return self.read.total() + self.refused.total() + len(self.failures)

    def add(self, other: Found) -> None:
        """Take in what another process found."""
        self.read += other.read
        self.refused += other.refused
        self.failures += other.failures
        self.seconds += other.seconds
        self.slowest = max(self.slowest, other.slowest)
        self.memory = max(self.memory, other.memory)


def reader_of(number: int, seed: int, readers: Sequence[Reader]) -> tuple[Reader, Random]:
    """Which reader an input is for, and the generator that makes it."""
    rng = Random(f"{seed}:{number}")
    return rng.choices(readers, [reader.share for reader in readers])[0], rng


def try_one(
    number: int, seed: int, folder: Path, found: Found, readers: Sequence[Reader] = READERS
) -> None:
    """Make input `number`, have it read, and note what came of it."""
    reader, rng = reader_of(number, seed, readers)
    path = reader.made(folder, rng)
    before, started = _most(), time.process_time()
    try:
        with _limited(LIMIT):
            reader.read(path)
        found.read[reader.name] += 1
    except HeadcountError as error:
        text = str(error)
        if not text or "\n" in text.strip() or len(text) > max(2000, error.most):
            found.failures.append(Failure(number, reader.name, f"no sentence: {text[:80]!r}"))
        else:
            found.refused[reader.name] += 1
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a Rust panic is no Exception
        found.failures.append(Failure(number, reader.name, _what(error), _where(error)))
    took, grown = time.process_time() - started, _most() - before
    found.seconds[reader.name] += took
    found.slowest = max(found.slowest, (took, number, reader.name))
    found.memory = max(found.memory, grown)
    if grown > MEMORY:
        what = f"took {grown / 2**20:,.0f} MB"
        found.failures.append(Failure(number, reader.name, what))


def try_many(
    numbers: Iterable[int], seed: int, found: Found, readers: Sequence[Reader] = READERS
) -> Generator[int]:
    """Try inputs in turn, each in a folder of its own; yields each one's number before it."""
    with tempfile.TemporaryDirectory(prefix="headcount-fuzz-") as made, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in numbers:
            yield number
            folder = Path(made) / str(number)
            folder.mkdir()
            try_one(number, seed, folder, found, readers)
            shutil.rmtree(folder)


def warm_up(readers: Sequence[Reader] = READERS) -> None:
    """Read a good file of each kind: what is imported on the way is no input's fault."""
    for reader in readers:
        with tempfile.TemporaryDirectory(prefix="headcount-fuzz-") as made:
            reader.read(reader.write(Path(made), Gentle(0)))


def _what(error: BaseException) -> str:
    if isinstance(error, Hang):
        return f"more than {LIMIT:g} s of work, or {WAIT:g} s of waiting"
    return f"{type(error).__name__}: {str(error)[:160]!r}"


def _where(error: BaseException) -> str:
    """The last line of headcount's own that the error came through."""
    own = [
        f"{Path(frame.filename).name}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if f"{os.sep}headcount{os.sep}" in frame.filename
    ]
    return own[-1] if own else ""


def _most() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@contextmanager
def _limited(seconds: float) -> Generator[None]:
    """Raise Hang after so much processor time, for a busy machine is no hang; or long waiting."""

    def ring(*_: Any) -> None:
        raise Hang

    timers = (
        (signal.SIGPROF, signal.ITIMER_PROF, seconds),
        (signal.SIGALRM, signal.ITIMER_REAL, WAIT),
    )
    before = [signal.signal(number, ring) for number, _, _ in timers]
    for _, timer, most in timers:
        signal.setitimer(timer, most)
    try:
        yield
    finally:
        for (number, timer, _), old in zip(timers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, old)


# --- several processes ---


def run(
    count: int, seed: int, processes: int, *, first: int = 0, readers: Sequence[str] = ()
) -> Found:
    """Inputs `first` to `first + count`, shared by processes; a process that dies is a failure.

    `readers` are the names of those to try, if not all.
    """
    chosen = [reader for reader in READERS if not readers or reader.name in readers]
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["fuzz.readers"])  # imported once for all that are started
    results: Any = context.Queue()
    found = Found()
    last = first + count
    starts = [first + place for place in range(processes)]
    now = [context.Array("d", [-1.0, 0.0]) for _ in range(processes)]

    def start(place: int, at: int) -> Any:
        # the imports and good files of all kinds take a while
        now[place][0], now[place][1] = -1.0, time.monotonic() + 5 * SILENCE
        worker = context.Process(
            target=_work,
            args=(range(at, last, processes), seed, now[place], results, readers),
        )
        worker.start()
        return worker

    workers = {place: start(place, at) for place, at in enumerate(starts)}
    while workers:
        with suppress(Empty):
            found.add(results.get(timeout=0.5))
        _tell(found, count)
        for place, worker in list(workers.items()):
            silent = time.monotonic() - now[place][1] > SILENCE
            if worker.is_alive() and not silent:
                continue
            if worker.is_alive():
                worker.kill()
            worker.join()
            del workers[place]
            if worker.exitcode == 0:
                continue
            number = int(now[place][0])
            why = f"silent for {SILENCE:g} s" if silent else f"died with {worker.exitcode}"
            name = reader_of(number, seed, chosen)[0].name if number >= 0 else "none"
            found.failures.append(Failure(number, name, why))
            if number >= 0 and number + processes < last:
                workers[place] = start(place, number + processes)
    while True:
        try:
            found.add(results.get(timeout=1))
        except Empty:
            return found


def _work(numbers: Sequence[int], seed: int, now: Any, results: Any, names: Sequence[str]) -> None:
    """One process: says what it is at, and now and then what it found."""
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # nothing can be asked for, and Rust's panics are not shown
        os.dup2(quiet, stream)
    os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (used + 6 * 2**30, resource.RLIM_INFINITY))
    readers = [reader for reader in READERS if not names or reader.name in names]
    warm_up(readers)
    found = Found()
    for number in try_many(numbers, seed, found, readers):
        results.put(copy.copy(found))  # at once: the next input may be this process's last
        found.__init__()
        now[0], now[1] = float(number), time.monotonic()
    results.put(found)


def _tell(found: Found, count: int) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{found.count:,} of {count:,}, {len(found.failures)} failures ")
