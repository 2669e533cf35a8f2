"""Executors where what they stand on is not there; real clusters are in tests/cluster."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import headcount as hc
from headcount.base.errors import HeadcountError
from headcount.studies.executors.protocol import ExecutorOptions
from headcount.studies.executors.ray import STARTS, OnRay

PROBE = {"name": "one", "runs": {"one": {"kind": "probe", "model": "none"}}}
RAY = ExecutorOptions(executor="ray")


class SlowRay:
    """A Ray whose first nodes take too long."""

    def __init__(self, slow: int) -> None:
        self.slow, self.began, self.ended = slow, 0, 0

    def is_initialized(self) -> bool:
        return False

    def init(self, **_: Any) -> None:
        self.began += 1
        if self.began <= self.slow:
            raise Exception("The current node timed out during startup.")

    def shutdown(self) -> None:
        self.ended += 1

    def remote(self, **_: Any) -> Any:
        return lambda function: function


def ray_that_is(slow: int, monkeypatch: pytest.MonkeyPatch) -> SlowRay:
    ray = SlowRay(slow)
    monkeypatch.setitem(sys.modules, "ray", ray)
    return ray


def test_a_slow_start_of_ray_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    ray = ray_that_is(STARTS - 1, monkeypatch)
    OnRay(tmp_path, RAY, 1)
    assert (ray.began, ray.ended) == (STARTS, STARTS - 1)


def test_a_ray_that_does_not_start_is_one_sentence_and_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    ray = ray_that_is(STARTS, monkeypatch)
    with pytest.raises(HeadcountError, match=r"no Ray cluster on this machine: .* timed out"):
        hc.study(PROBE, tmp_path / "out").run(RAY)
    assert ray.ended == STARTS
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("executor", ["ray", "slurm"])
def test_what_cannot_be_reached_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executor: Any
):
    monkeypatch.setenv("PATH", "")  # no sbatch
    pytest.importorskip("submitit" if executor == "slurm" else "ray")
    how = ExecutorOptions(executor=executor, address="127.0.0.1:1" if executor == "ray" else None)
    with pytest.raises(HeadcountError, match="There is no"):
        hc.study(PROBE, tmp_path / "out").run(how)
    assert not (tmp_path / "out").exists()
