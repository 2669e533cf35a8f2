"""Studies on a Ray cluster of two nodes of this machine, some of which are lost on the way."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from cluster.conftest import clean, command, finished, opened, pids, rows, wait_until
from cluster.tiny import data_in, tiny
from headcount.studies.executors.protocol import ExecutorOptions

PROBES: dict[str, Any] = {
    "name": "probes",
    "lease": 8,
    "runs": {
        "base": {"kind": "probe", "model": "none", "options": {"say": "base"}},
        "each": {
            "kind": "probe", "model": {"run": "base"}, "seeds": 3,
            "grid": {"options.say": ["a", "b"]},
        },
    },
}  # fmt: skip
SLOW: dict[str, Any] = {
    "name": "slow",
    "lease": 8,
    "runs": {"slow": {"kind": "probe", "model": "none", "seeds": 6, "options": {"wait": 3}}},
}


def on(nodes: Any) -> tuple[str, ...]:
    return ("--executor", "ray", "--address", nodes.address, "--json")


def test_real_runs_give_the_same_table_on_every_executor(tmp_path: Path, nodes: Any):
    data = tiny(data_in(tmp_path / "data"))
    there = opened(tmp_path / "ray", data)
    code, out, err = finished(command(there, "run", *on(nodes)), 300)
    assert code == 0, err
    assert json.loads(out)["counts"]["done"] == len(there.planned.by_key) == 13
    serial, processes = opened(tmp_path / "serial", data), opened(tmp_path / "processes", data)
    serial.run()
    processes.run(ExecutorOptions(executor="processes", workers=2))
    assert rows(serial) == rows(processes) == rows(there)
    assert all(map(clean, (serial, processes, there)))


def test_a_node_that_is_lost_costs_nothing(tmp_path: Path, nodes: Any):
    study = opened(tmp_path, SLOW)
    driver = command(study, "run", *on(nodes))
    wait_until(lambda: len(pids(study)) == 2, "a run on each node")
    nodes.remove_node(nodes.pair[0], allow_graceful=False)
    code, _, err = finished(driver)
    assert code == 0, err
    assert study.status().counts["done"] == 6
    assert clean(study)


def test_a_worker_that_is_killed_costs_nothing(tmp_path: Path, nodes: Any):
    study = opened(tmp_path, SLOW)
    driver = command(study, "run", *on(nodes))
    wait_until(lambda: len(pids(study)) == 2, "a run on each node")
    for pid in pids(study):
        os.kill(pid, signal.SIGKILL)
    code, _, err = finished(driver)
    assert code == 0, err
    assert clean(study)


def test_a_driver_that_is_stopped_gives_its_runs_back(tmp_path: Path, nodes: Any):
    study = opened(tmp_path, SLOW)
    driver = command(study, "run", *on(nodes))
    wait_until(lambda: len(pids(study)) == 2, "a run on each node")
    driver.send_signal(signal.SIGINT)
    code, _, err = finished(driver)
    assert code == 130, err
    counts = study.status().counts
    assert (counts["running"], counts["stale"], counts["failed"]) == (0, 0, 0)
    assert study.run().done == 6
    assert clean(study)


def test_a_cluster_of_its_own_is_started_and_ended(tmp_path: Path):
    pytest.importorskip("ray", reason="ray is not installed")
    study, serial = opened(tmp_path / "ray", PROBES), opened(tmp_path / "serial", PROBES)
    code, _, err = finished(command(study, "run", "--executor", "ray"))
    assert code == 0, err
    serial.run()
    assert rows(study) == rows(serial)
    assert clean(study)


@pytest.mark.parametrize("listening", [False, True], ids=["nobody", "no Ray"])
def test_a_cluster_that_is_not_there_is_one_sentence(tmp_path: Path, listening: bool):
    pytest.importorskip("ray", reason="ray is not installed")
    study = opened(tmp_path, PROBES)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        if listening:
            other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        began = time.monotonic()
        code, out, err = finished(command(study, "run", "--executor", "ray", "--address", address))
        print(f"{time.monotonic() - began:.1f} s")  # noqa: T201
    assert (code, out) == (1, "")
    assert f"There is no Ray cluster at {address}" in err
    assert len(err.strip().splitlines()) == 1
    assert not study.folder.exists()
