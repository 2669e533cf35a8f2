"""One run after the other, in this process: what the last one opened is there for the next."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headcount.studies.executors.protocol import ExecutorOptions, JobEnd
from headcount.studies.worker import Job, work


class Serial:
    """Carries a job out when it is submitted."""

    leaves = False

    def __init__(self, folder: Path, executor_options: ExecutorOptions, threads: int) -> None:
        self.folder = folder
        self.over: list[JobEnd] = []

    def room(self) -> int:
        """One, when the last is over."""
        return 0 if self.over else 1

    def submit(self, key: str, job: Job, after: Sequence[str]) -> None:
        """Do it now."""
        found = work(self.folder, job)
        self.over.append(JobEnd(key, found["state"], found["error"]))

    def ended(self, seconds: float) -> list[JobEnd]:
        """The job that was just done."""
        over, self.over = self.over, []
        return over

    def close(self) -> None:
        """Nothing is left."""
