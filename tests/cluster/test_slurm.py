"""Studies as SLURM jobs: of a real SLURM on this machine, and of submitit's stand-in for one."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from cluster.conftest import clean, command, finished, opened, pids, ran, rows, wait_until
from headcount.studies.executors.protocol import ExecutorOptions
from headcount.studies.study import Study

CHAIN: dict[str, Any] = {
    "name": "chain",
    "lease": 8,
    "runs": {
        "base": {"kind": "probe", "model": "none", "options": {"say": "base"}},
        "each": {"kind": "probe", "model": {"run": "base"}, "seeds": 3, "options": {"say": "each"}},
        "last": {
            "kind": "probe", "model": {"run": "each"}, "seeds": [0, 2], "options": {"say": "last"},
        },
    },
}  # fmt: skip
SLOW: dict[str, Any] = {
    "name": "slow",
    "lease": 8,
    "runs": {
        "slow": {"kind": "probe", "model": "none", "options": {"wait": 6}},
        "after": {"kind": "probe", "model": {"run": "slow"}, "options": {"say": "after"}},
    },
}


def serial(folder: Path, data: Any) -> list[dict[str, Any]]:
    study = opened(folder / "serial", data)
    study.run()
    return rows(study)


def submit(study: Study) -> str:
    code, _, err = finished(command(study, "run", "--executor", "slurm"))
    assert code == 0, err
    return err


def in_queue(*more: str) -> list[str]:
    return ran("squeue", "--me", "--noheader", "--array", "--format=%i", *more).split()


def watch(study: Study) -> dict[str, Any]:
    code, out, err = finished(command(study, "watch", "--json"))
    assert code == 0, err
    return json.loads(out)


@pytest.mark.usefixtures("slurm")
def test_jobs_are_submitted_left_and_watched_and_wait_for_one_another(tmp_path: Path):
    study = opened(tmp_path, CHAIN)
    assert "6 runs are left to slurm" in submit(study)
    assert watch(study)["counts"]["done"] == 6
    assert rows(study) == serial(tmp_path, CHAIN)
    assert clean(study)


@pytest.mark.usefixtures("slurm")
def test_what_is_in_the_queue_is_not_submitted_twice(tmp_path: Path):
    study = opened(tmp_path, SLOW)
    submit(study)
    before = in_queue()
    assert len(before) == 2
    submit(study)
    assert set(in_queue()) <= set(before)
    # and one that waits, waits for those that are there
    found = study.run(ExecutorOptions(executor="slurm", wait=True))
    assert found.done == 2
    assert len(list((study.folder / "slurm").glob("*/*_submitted.pkl"))) == 2
    assert clean(study)


@pytest.mark.usefixtures("slurm")
def test_a_job_that_is_killed_and_put_back_into_the_queue_is_made_once(tmp_path: Path):
    study = opened(tmp_path, SLOW)
    submit(study)
    wait_until(lambda: pids(study), "the run")
    (pid,) = pids(study)
    os.kill(pid, signal.SIGSTOP)  # it cannot end in between
    (job,) = in_queue("--states=RUNNING")
    ran("scontrol", "requeue", job)
    os.kill(pid, signal.SIGKILL)
    assert watch(study)["counts"]["done"] == 2
    assert "Restarts=1" in ran("scontrol", "show", "job", job)
    assert rows(study) == serial(tmp_path, SLOW)
    assert clean(study)


@pytest.mark.usefixtures("slurm")
def test_a_job_whose_process_is_killed_is_made_by_the_next_call(tmp_path: Path):
    study = opened(tmp_path, SLOW)
    submit(study)
    wait_until(lambda: pids(study), "the run")
    os.kill(pids(study)[0], signal.SIGKILL)
    wait_until(lambda: not in_queue(), "the end of all jobs")
    counts = study.status().counts
    assert (counts["stale"], counts["planned"], counts["done"]) == (1, 1, 0)
    submit(study)
    assert watch(study)["counts"]["done"] == 2
    assert clean(study)


@pytest.mark.usefixtures("slurm")
def test_a_job_that_is_preempted_goes_back_into_the_queue(tmp_path: Path):
    study = opened(tmp_path, SLOW)
    submit(study)
    wait_until(lambda: pids(study), "the run")
    before = pids(study)
    ran("scancel", "--signal=USR2", *in_queue("--states=RUNNING"))
    wait_until(lambda: pids(study) != before, "the end of the first try")
    assert study.status().counts["failed"] == 0
    assert watch(study)["counts"]["done"] == 2
    (log,) = [
        path for path in (study.folder / "slurm").rglob("*.err") if "USR2" in path.read_text()
    ]
    assert "this job is preempted" in log.read_text()
    assert rows(study) == serial(tmp_path, SLOW)
    assert clean(study)


@pytest.mark.usefixtures("slurm")
def test_a_folder_goes_on_under_another_executor(tmp_path: Path):
    part = {**CHAIN, "runs": {"base": CHAIN["runs"]["base"]}}
    opened(tmp_path, part).run()
    study = opened(tmp_path, CHAIN)
    study.run(ExecutorOptions(executor="slurm", wait=True), update=True)
    there = opened(tmp_path / "other", part)
    there.run(ExecutorOptions(executor="slurm", wait=True))
    other = opened(tmp_path / "other", CHAIN)
    other.run(update=True)
    assert rows(study) == rows(other) == serial(tmp_path, CHAIN)
    assert clean(study)
    assert clean(other)


@pytest.mark.usefixtures("slurm")
def test_what_slurm_refuses_is_one_sentence(tmp_path: Path):
    study = opened(tmp_path, CHAIN)
    code, out, err = finished(
        command(study, "run", "--executor", "slurm", "--partition", "nowhere")
    )
    assert (code, out) == (1, "")
    assert "SLURM did not take 1 jobs" in err
    assert "invalid partition" in err
    assert len(err.strip().splitlines()) == 1


def test_processes_of_this_machine_stand_in_for_jobs(tmp_path: Path):
    study = opened(tmp_path, CHAIN)
    code, out, err = finished(
        command(study, "run", "--executor", "slurm", "--json", HEADCOUNT_SLURM="local")
    )
    assert code == 0, err
    assert json.loads(out)["counts"]["done"] == 6
    assert rows(study) == serial(tmp_path, CHAIN)
    assert clean(study)


def test_without_slurm_it_is_said(tmp_path: Path):
    study = opened(tmp_path, CHAIN)
    code, out, err = finished(command(study, "run", "--executor", "slurm", PATH="/nowhere"))
    assert (code, out) == (1, "")
    assert "the command sbatch is not found" in err
