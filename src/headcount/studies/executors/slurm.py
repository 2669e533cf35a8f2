"""Runs as SLURM jobs, through submitit: submitted and left, watched later.

All runs that can begin at once are one array of jobs; those that start from them are another array
that SLURM holds back until then. A job that is preempted, or out of time, is put back into the
queue and goes on where it was. The study's folder must be seen by all machines.
"""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

from headcount.base.errors import HeadcountError, in_words, need_extra
from headcount.base.files import read_json, write_json
from headcount.base.json_object import JsonDict
from headcount.runs.run import Run
from headcount.studies.executors.protocol import ExecutorOptions, JobEnd
from headcount.studies.ledger import Ledger
from headcount.studies.worker import Job, work

SUBMITTED = "slurm"
CLUSTER = "HEADCOUNT_SLURM"
"""`local` tries jobs as processes of this machine, with everything else as on a cluster."""
LARGEST = 1000
"""Jobs of one array: SLURM takes no more unless it is told to."""
TIMEOUTS = 50
"""How often a job goes on after its time was up."""
EVERY = 5.0
"""Seconds between two looks at SLURM's queue, or at a run that is waited for."""


class SlurmJob:
    """A job as submitit takes it: it can be put back into the queue at any time."""

    def __call__(self, folder: str, job: JsonDict) -> JsonDict:
        """Carry the run out, once everything it starts from is there."""
        ledger, run = Ledger(folder, job["lease"]), Run.read(job["run"])
        # of a run on other files than were planned with, `work` says that it failed
        before = [number.key for number in run.inputs] if run.key == job["key"] else []
        while any(ledger.state(key).name == "running" for key in before):
            time.sleep(EVERY)  # somebody makes it who is no job of SLURM's
        missing = [key for key in before if ledger.state(key).name != "done"]
        if missing:
            return {"key": run.key, "state": "not run", "error": f"{missing[0]} is not there."}
        _leave_when_preempted()
        return work(folder, job)

    def checkpoint(self, folder: str, job: JsonDict) -> Any:
        """What is asked again after preemption: the same."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, folder, job)


def _leave_when_preempted() -> None:
    """Whatever happens to submitit while it puts the job back into the queue is no failed run.

    SLURM may be quick to end the job, and with it the very command that asks for that.
    """
    requeue: Any = signal.getsignal(signal.SIGUSR2)

    def leave(number: int, frame: Any) -> None:
        try:
            requeue(number, frame)
        except Exception as error:
            raise SystemExit(f"The job is preempted: {in_words(error)}.") from error

    if callable(requeue):
        signal.signal(signal.SIGUSR2, leave)


class OnSlurm:
    """Collects jobs level by level, submits them as arrays, and leaves them."""

    def __init__(self, folder: Path, executor_options: ExecutorOptions, threads: int) -> None:
        try:
            import submitit
        except ImportError as error:
            raise need_extra("submitit", "slurm") from error
        self.local = os.environ.get(CLUSTER) == "local"
        if not self.local and shutil.which("sbatch") is None:
            raise HeadcountError("There is no SLURM here: the command sbatch is not found.")
        self.submitit: Any = submitit
        self.folder, self.executor_options, self.threads = folder, executor_options, threads
        self.leaves = not executor_options.wait and not self.local
        self.taken: dict[str, tuple[Job, list[str]]] = {}
        self.jobs: JsonDict = {}
        self.queued = {} if self.local else queued(folder)
        self.looked = time.monotonic()

    def room(self) -> int:
        """Any number: SLURM has its own queue."""
        return 1_000_000

    def submit(self, key: str, job: Job, after: Sequence[str]) -> None:
        """Take it; it is submitted with the others of its level."""
        if key not in self.queued:
            self.taken[key] = (job, list(after))

    def ended(self, seconds: float) -> list[JobEnd]:
        """Submit what was taken; jobs that are over, where they are waited for."""
        self._submit_all()
        if self.leaves:
            return []
        over = self._over()
        if not over:
            time.sleep(seconds)
            over = self._over()
        return over

    def _over(self) -> list[JobEnd]:
        """Jobs that have answered, and those that are in the queue no more."""
        over = [key for key, job in self.jobs.items() if self._has_answered(job)]
        if not self.local and time.monotonic() - self.looked > EVERY:
            self.looked, queued_ids = time.monotonic(), _in_queue()
            over += [
                k for k, job in self.jobs.items() if k not in over and job.job_id not in queued_ids
            ]
            left = {key: job for key, job in self.queued.items() if job in queued_ids}
            # those of an earlier call: the folder alone knows how they ended
            before, self.queued = set(self.queued) - set(left), left
            return [JobEnd(key, "over") for key in before] + [self._answer(key) for key in over]
        return [self._answer(key) for key in over]

    def _has_answered(self, job: Any) -> bool:
        return bool(job.done()) if self.local else job.paths.result_pickle.exists()

    def _answer(self, key: str) -> JobEnd:
        job = self.jobs.pop(key)
        if not job.paths.result_pickle.exists():
            return JobEnd(key, "died", f"SLURM job {job.job_id} ended without an answer.")
        try:
            answer = job.result()
            return JobEnd(key, answer["state"], answer["error"])
        except Exception as error:  # whatever submitit could not bring back
            return JobEnd(key, "died", in_words(error, 400))

    def _submit_all(self) -> None:
        """Arrays for each level of what waits for what."""
        ids: dict[str, str] = {key: _array(job) for key, job in self.queued.items()}
        while self.taken:
            level = [
                k for k, (_, after) in self.taken.items() if self.taken.keys().isdisjoint(after)
            ]
            before = {
                ids[waiting] for key in level for waiting in self.taken[key][1] if waiting in ids
            }
            for start in range(0, len(level), LARGEST):
                keys = level[start : start + LARGEST]
                for key, job in zip(keys, self._submit(keys, sorted(before)), strict=True):
                    ids[key] = _array(job.job_id)
                    if not self.local:
                        write_json(self.folder / SUBMITTED / f"{key}.json", {"job": job.job_id})
                    self.jobs[key] = job
            for key in level:
                del self.taken[key]

    def _submit(self, keys: Sequence[str], before: Sequence[str]) -> list[Any]:
        try:
            executor = self._executor(before)
            with redirect_stderr(io.StringIO()), executor.batch():
                return [
                    executor.submit(SlurmJob(), str(self.folder), self.taken[key][0].to_plain())
                    for key in keys
                ]
        except (OSError, RuntimeError) as error:
            text = in_words(error, 400)
            raise HeadcountError(f"SLURM did not take {len(keys)} jobs: {text}.") from error

    def _executor(self, before: Sequence[str]) -> Any:
        options = self.executor_options
        executor = self.submitit.AutoExecutor(
            folder=self.folder / SUBMITTED / "%j",
            cluster="local" if self.local else "slurm",
            local_max_num_timeout=TIMEOUTS,
            slurm_max_num_timeout=TIMEOUTS,
        )
        slurm: JsonDict = {
            "slurm_cpus_per_task": max(1, round(options.cpus)),
            "slurm_setup": [f"export OMP_NUM_THREADS={self.threads}"],
            "slurm_partition": options.partition,
            "slurm_gres": f"gpu:{round(options.gpus)}" if options.gpus else None,
            "slurm_dependency": f"afterany:{':'.join(before)}" if before else None,
        }
        executor.update_parameters(name="headcount", timeout_min=options.minutes, **slurm)
        return executor

    def close(self) -> None:
        """Jobs stay where they are."""


def queued(folder: Path) -> dict[str, str]:
    """Run -> the SLURM job that was submitted for it and is not over."""
    ids = {}
    for path in (folder / SUBMITTED).glob("*.json"):
        try:
            ids[path.stem] = str(read_json(path, "SLURM job")["job"])
        except (HeadcountError, TypeError, KeyError):
            continue
    if not ids:
        return {}
    queued_ids = _in_queue()
    return {key: job for key, job in ids.items() if job in queued_ids}


def _in_queue() -> set[str]:
    """Numbers of my jobs that wait or run."""
    command = ["squeue", "--me", "--noheader", "--array", "--format=%i"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        text = " ".join((getattr(error, "stderr", None) or str(error)).split())
        raise HeadcountError(f"SLURM does not say which jobs it has: {text}.") from error
    return set(listed.stdout.split())


def _array(job: str) -> str:
    return job.partition("_")[0]
