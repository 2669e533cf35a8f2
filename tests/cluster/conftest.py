"""A Ray cluster of two nodes, and a SLURM of one, started for the tests and ended after them.

What is not installed is said, and its tests do not run: `make cluster` installs Debian's packages.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

import headcount as hc
from headcount.studies.study import Study

# a job that is put back into the queue waits until its credentials have expired
PROGRAMS = ("sbatch", "slurmctld", "slurmd", "munged")
os.environ["PATH"] += ":/usr/sbin:/sbin"
CONF = """\
ClusterName=one
SlurmctldHost={host}
SlurmctldPort={controller}
SlurmdPort={daemon}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket,cred_expire=15
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
MpiDefault=none
KillWait=5
ReturnToService=2
NodeName={host} CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say what did not run, where nobody overlooks it."""
    for report in terminalreporter.stats.get("skipped", []):
        terminalreporter.write_line(f"DID NOT RUN: {report.nodeid}: {report.longrepr[2]}")


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """A SLURM of this machine alone, in a folder of its own."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"no SLURM here: {', '.join(missing) or 'root is needed to start one'}")
    folder = tmp_path_factory.mktemp("slurm")
    for name in ("munge", "state", "spool"):
        (folder / name).mkdir(mode=0o755)
    munge = folder / "munge"
    (munge / "key").write_bytes(os.urandom(1024))
    (munge / "key").chmod(0o400)
    conf = folder / "slurm.conf"
    ports = {"controller": free_port(), "daemon": free_port()}
    host = socket.gethostname().split(".")[0]
    conf.write_text(CONF.format(folder=folder, host=host, cpus=os.cpu_count(), **ports))
    before = os.environ.get("SLURM_CONF")
    os.environ["SLURM_CONF"] = str(conf)
    files = [f"--{name}-file={munge / name}" for name in ("key", "log", "pid", "seed")]
    daemons = [
        subprocess.Popen(["munged", "--foreground", "--force", f"--socket={munge}/socket", *files])
    ]
    try:
        wait_until((munge / "socket").exists, "munged")
        daemons += [subprocess.Popen([name, "-D"]) for name in ("slurmctld", "slurmd")]
        wait_until(lambda: " idle" in ran("sinfo", "--noheader", "--format= %T"), "SLURM")
        yield
    finally:
        subprocess.run(["scancel", "--me"], check=False)
        for daemon in reversed(daemons):
            daemon.terminate()
            with_patience(daemon)
        if before is None:
            del os.environ["SLURM_CONF"]
        else:
            os.environ["SLURM_CONF"] = before


def with_patience(daemon: subprocess.Popen[bytes]) -> None:
    try:
        daemon.wait(20)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()


def free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("", 0))
        return int(asked.getsockname()[1])


@pytest.fixture
def nodes() -> Generator[Any]:
    """A Ray cluster: a head without room for runs, and two nodes for one run each."""
    pytest.importorskip("ray", reason="ray is not installed")
    from ray.cluster_utils import Cluster

    cluster = until_it_starts(lambda: Cluster(True, head_node_args={"num_cpus": 0}))
    try:
        cluster.pair = [until_it_starts(lambda: cluster.add_node(num_cpus=1)) for _ in range(2)]
        yield cluster
    finally:
        cluster.shutdown()


def until_it_starts(start: Callable[[], Any], tries: int = 4) -> Any:
    """Ray gives up on a node after 30 seconds, which a busy machine may need; then once more."""
    for left in reversed(range(tries)):
        try:
            return start()
        except Exception as error:
            if "timed out" not in str(error).lower() or not left:
                raise


def ran(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def patient(seconds: float) -> float:
    """So long on a machine that does nothing else; where others work as well, longer."""
    return seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def wait_until(true: Callable[[], Any], what: str, seconds: float = 120) -> None:
    seconds = patient(seconds)
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, f"{what} did not come in {seconds} s"
        time.sleep(0.2)


def opened(folder: Path, data: Any) -> Study:
    """A study of this content, in this folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "study.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return hc.study(path, folder / "out")


def command(study: Study, word: str, *more: object, **environment: str) -> Any:
    """`headcount study WORD` in a process of its own, which is not waited for."""
    line = [sys.executable, "-m", "headcount", "study", word, str(study.planned.path)]
    line += ["--out", str(study.folder), *map(str, more)]
    return subprocess.Popen(
        line, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, **environment},
    )  # fmt: skip


def finished(process: Any, seconds: float = 120) -> tuple[int, str, str]:
    try:
        out, err = process.communicate(timeout=patient(seconds))
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        out, err = process.communicate()
    return process.returncode, out, err


def rows(study: Study) -> list[dict[str, Any]]:
    """The study's table without its clocks."""
    return [
        {name: repr(row[name]) for name in row if name != "seconds"} for row in study.table().rows
    ]


def clean(study: Study) -> bool:
    """Whether nothing is left of the work, and every run is there once."""
    left = [path for name in ("claims", "work") for path in (study.folder / name).glob("*")]
    there = {path.name for path in (study.folder / "runs").iterdir()}
    return not left and there == set(study.planned.by_key)


def pids(study: Study) -> list[int]:
    """Processes that hold a run."""
    held = [each["holder"] for each in study.status().running if each["state"] == "running"]
    return [int(each.split()[1]) for each in held if each]
