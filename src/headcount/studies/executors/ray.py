"""Runs on a Ray cluster: an existing one by its address, or one that is started here.

All machines see the study's folder under the same path and have headcount installed. A run whose
process or machine is lost is handed over again; the lease in the folder sees to it that it is made
once.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headcount.base.errors import HeadcountError, in_words, need_extra
from headcount.base.json_object import JsonDict
from headcount.studies.executors.protocol import ExecutorOptions, JobEnd
from headcount.studies.worker import Job, work

PASSED_ON = ("HF_HUB_OFFLINE", "HF_HOME", "HEADCOUNT_KILL_AT", "HEADCOUNT_KILL_LOG")
"""Settings of this process that those on the cluster have, too."""
QUIET = {"log_to_driver": False, "logging_level": "error"}
SETTINGS = b"\x04"
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + SETTINGS + bytes(5)
"""How a gRPC client greets; the server answers with a frame of the same type."""
PATIENCE = 5.0
"""Seconds a cluster has to answer, and a run to give itself back."""
STARTS = 3
"""How often a cluster of this machine is started: Ray gives up on a node after 30 seconds."""


def carry_out(settings: dict[str, str], folder: str, job: JsonDict) -> JsonDict:
    """What runs on the cluster; nothing that reads the settings is imported before it."""
    os.environ.update(settings)
    return work(folder, job)


class OnRay:
    """Hands every job to Ray, which knows where there is room."""

    leaves = False

    def __init__(self, folder: Path, executor_options: ExecutorOptions, threads: int) -> None:
        try:
            import ray
        except ImportError as error:
            raise need_extra("ray", "ray") from error
        self.ray: Any = ray
        self.folder, self.executor_options = folder, executor_options
        self.own = not ray.is_initialized()
        if self.own:
            _connect(ray, executor_options)
        resources: Any = {"num_cpus": executor_options.cpus, "num_gpus": executor_options.gpus}
        # not Ray, but the study counts how often a run is tried again
        self.remote = ray.remote(max_retries=0, **resources)(carry_out)
        passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        threads_of = {"OMP_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "false"}
        self.settings = threads_of | passed
        self.jobs: dict[Any, str] = {}

    def room(self) -> int:
        """As many as run at once, and as many again: Ray has its own queue."""
        running, options = self.ray.cluster_resources(), self.executor_options
        slots = [running.get("CPU", 1.0) / options.cpus]
        if options.gpus:
            slots.append(running.get("GPU", 0.0) / options.gpus)
        return max(1, 2 * int(min(slots))) - len(self.jobs)

    def submit(self, key: str, job: Job, after: Sequence[str]) -> None:
        """Hand it over."""
        self.jobs[self.remote.remote(self.settings, str(self.folder), job.to_plain())] = key

    def ended(self, seconds: float) -> list[JobEnd]:
        """Jobs that are over, well or not."""
        if not self.jobs:
            return []
        over, _ = self.ray.wait(list(self.jobs), num_returns=1, timeout=seconds)
        more, _ = self.ray.wait(list(self.jobs), num_returns=len(self.jobs), timeout=0)
        return [self._over(job) for job in {*over, *more}]

    def _over(self, job: Any) -> JobEnd:
        key = self.jobs.pop(job)
        try:
            answer = self.ray.get(job)
        except self.ray.exceptions.RayError as error:
            return JobEnd(key, "died", in_words(error))
        return JobEnd(key, answer["state"], answer["error"])

    def close(self) -> None:
        """Cancel what is under way, let it give itself back, and leave the cluster."""
        for job in self.jobs:
            self.ray.cancel(job, force=False)
        if self.jobs:
            self.ray.wait(list(self.jobs), num_returns=len(self.jobs), timeout=PATIENCE)
        if self.own:
            self.ray.shutdown()


def _connect(ray: Any, executor_options: ExecutorOptions) -> None:
    address = executor_options.address
    if address is None:
        processors = max(1, round(executor_options.workers * executor_options.cpus))
        options: JsonDict = {"num_cpus": processors, "include_dashboard": False}
    else:
        _require_answer(address)
        options = {"address": address}
    for left in reversed(range(STARTS if address is None else 1)):
        try:
            ray.init(**options, **QUIET)
            return
        except Exception as error:  # Ray has no type of its own for a node that is too slow
            ray.shutdown()
            if not left:
                where = f"at {address}" if address else "on this machine"
                text = f"There is no Ray cluster {where}: {in_words(error)}."
                raise HeadcountError(text) from error


def _require_answer(address: str) -> None:
    """Refuse an address where no such server answers: Ray itself would wait for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not port.isdigit():
        return
    try:
        with socket.create_connection((host.strip("[]"), int(port)), PATIENCE) as server:
            server.sendall(HELLO)
            if not os.environ.get("RAY_USE_TLS") and server.recv(9)[3:4] != SETTINGS:
                raise OSError("what listens there is something else")
    except (OSError, OverflowError) as error:
        raise HeadcountError(
            f"There is no Ray cluster at {address}: {getattr(error, 'strerror', None) or error}."
        ) from error
