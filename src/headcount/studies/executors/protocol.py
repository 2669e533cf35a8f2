"""What an executor is: it takes jobs and says how they ended. All results are in the folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from headcount.base.errors import UsageError

if TYPE_CHECKING:
    from headcount.studies.worker import Job


@dataclass(frozen=True)
class JobEnd:
    """A job that is over."""

    key: str
    state: str
    """done, failed, lost, unwritten, running (another worker has it), or died."""
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class ExecutorOptions:
    """Where and how the runs of a study are carried out."""

    executor: Literal["serial", "processes", "ray", "slurm"] = "serial"
    """serial, processes, ray or slurm; see `headcount ls executors`."""
    workers: int = 2
    """Runs at once, with processes and with a local Ray cluster."""
    address: str | None = None
    """Address of a Ray cluster, or auto; a local one is started when left out."""
    cpus: float = 1.0
    """Processors of each run, on Ray and SLURM."""
    gpus: float = 0.0
    """GPUs of each run, on Ray and SLURM."""
    partition: str | None = None
    """SLURM partition."""
    minutes: int = 240
    """Time limit of a SLURM job in minutes; a longer run continues in a new job."""
    wait: bool = False
    """Wait until the SLURM jobs have ended."""

    def __post_init__(self) -> None:
        if self.workers < 1 or self.cpus <= 0 or self.gpus < 0 or self.minutes < 1:
            raise UsageError("workers, cpus and minutes are above 0, gpus not below.")


class Executor(Protocol):
    """Carries out jobs."""

    leaves: bool
    """It keeps the jobs, and what they wait for, when this process ends."""

    def room(self) -> int:
        """How many jobs it takes now."""
        ...

    def submit(self, key: str, job: Job, after: Sequence[str]) -> None:
        """Take a job; `after` are keys of runs that it must wait for, where the executor leaves."""
        ...

    def ended(self, seconds: float) -> list[JobEnd]:
        """Jobs that have ended, after so many seconds at the latest."""
        ...

    def close(self) -> None:
        """Stop what is still running, unless the executor leaves; give back what was taken."""
        ...


def make_executor(folder: Path, executor_options: ExecutorOptions, threads: int) -> Executor:
    """The executor that was asked for."""
    from headcount.studies.executors import EXECUTORS

    kind = EXECUTORS[executor_options.executor]
    return kind(folder.absolute(), executor_options, threads)
