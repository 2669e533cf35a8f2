"""Processes on this machine that take one job after the other.

A worker that dies costs only its own run. When this process dies, workers end what they are at and
publish it; then they find that nobody has more for them.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from headcount.base.files import cannot_write
from headcount.studies.executors.protocol import ExecutorOptions, JobEnd
from headcount.studies.worker import Job

LOGS = "logs"
GRACE = 20.0
"""Seconds a worker has to give its run back before it is killed."""


@dataclass
class _Worker:
    process: subprocess.Popen[str]
    key: str | None = None

    @property
    def answers(self) -> IO[str]:
        assert self.process.stdout is not None
        return self.process.stdout


class Processes:
    """So many workers, each in a process of its own."""

    leaves = False

    def __init__(self, folder: Path, executor_options: ExecutorOptions, threads: int) -> None:
        self.folder, self.most, self.threads = folder, executor_options.workers, threads
        self.workers: list[_Worker] = []
        self.selector = selectors.DefaultSelector()

    def room(self) -> int:
        """Workers without a job, those that are not there yet included."""
        return self.most - sum(worker.key is not None for worker in self.workers)

    def submit(self, key: str, job: Job, after: Sequence[str]) -> None:
        """Hand it to a worker that has none."""
        worker = next((one for one in self.workers if one.key is None), None) or self._start()
        worker.key = key
        assert worker.process.stdin is not None
        with suppress(BrokenPipeError):  # its death is seen when it should answer
            worker.process.stdin.write(json.dumps(job.to_plain()) + "\n")
            worker.process.stdin.flush()

    def _start(self) -> _Worker:
        logs = self.folder / LOGS
        threads = {"OMP_NUM_THREADS": str(self.threads), "TOKENIZERS_PARALLELISM": "false"}
        try:
            logs.mkdir(parents=True, exist_ok=True)
            with open(logs / f"worker-{os.getpid()}-{len(self.workers)}.log", "ab") as log:
                process = subprocess.Popen(
                    [sys.executable, "-m", "headcount.studies.worker", str(self.folder)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    env={**os.environ, **threads},
                )
        except OSError as error:
            raise cannot_write(logs, error) from error
        worker = _Worker(process)
        self.workers.append(worker)
        self.selector.register(worker.answers, selectors.EVENT_READ, worker)
        return worker

    def ended(self, seconds: float) -> list[JobEnd]:
        """Jobs whose workers have answered, or died."""
        ends = []
        for event, _ in self.selector.select(seconds):
            worker: _Worker = event.data
            line = worker.answers.readline()
            key, worker.key = worker.key, None
            if line and key is not None:
                answer = json.loads(line)
                ends.append(JobEnd(key, answer["state"], answer["error"]))
                continue
            code = worker.process.wait()
            self._drop(worker)
            if key is not None:
                ends.append(JobEnd(key, "died", _died(code)))
        return ends

    def _drop(self, worker: _Worker) -> None:
        self.selector.unregister(worker.answers)
        self.workers.remove(worker)
        for pipe in (worker.process.stdin, worker.process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def close(self) -> None:
        """Ask all workers to give back what they have, and wait for them."""
        for worker in self.workers:
            if worker.key is not None:
                worker.process.terminate()
            elif worker.process.stdin is not None:
                with suppress(OSError):
                    worker.process.stdin.close()
        for worker in list(self.workers):
            try:
                worker.process.wait(GRACE)
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()
            self._drop(worker)


def _died(code: int) -> str:
    """How a process ended, in words."""
    if code < 0:
        return f"killed by {signal.Signals(-code).name}."
    return f"it left with exit code {code}; see {LOGS}/."
