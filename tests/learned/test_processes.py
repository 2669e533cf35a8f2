"""Runs of gates that are killed, and runs in two processes."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from headcount.learned.trace import load_trace
from launching import in_two_processes, python

from .child import STILL, TRAIN, run

CHILD = Path(__file__).with_name("child.py")


@pytest.mark.parametrize(
    ("method", "kill_at", "step"),
    # 10 steps, gates fixed after the 6th: killed before and after that
    [("straight-through", 12, 3), ("hard-concrete", 18, 6)],
)
def test_killed_and_resumed_is_the_same_mask(
    method: str, kill_at: int, step: int, tmp_path: Path
) -> None:
    done = python(CHILD, method, tmp_path, kill_at)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not (tmp_path / "result.json").exists()
    resumed = run(method, tmp_path, TRAIN)
    assert resumed.resumed_from == step
    whole = run(method, None, TRAIN)
    assert resumed.mask == whole.mask
    assert resumed.route == whole.route
    for name, array in whole.trace.to_arrays().items():
        if name != "said":
            assert np.array_equal(array, resumed.trace.to_arrays()[name]), name
    assert resumed.trace.scores == whole.trace.scores
    assert [p["step"] for p in whole.trace.scores if "score" in p] == [0, 2, 4, 6, 8, 10]
    theirs = dict(resumed.model.named_parameters())
    for name, value in whole.model.named_parameters():
        assert torch.equal(value, theirs[name]), name


def test_two_processes_give_what_one_gives(tmp_path: Path) -> None:
    in_two_processes(CHILD, "straight-through", tmp_path, 0)
    first, second = (load_trace(tmp_path / f"rank-{rank}.npz") for rank in (0, 1))
    assert np.array_equal(first.values, second.values)
    assert np.array_equal(first.states, second.states)
    single = run("straight-through", None, STILL)
    assert np.array_equal(first.states, single.trace.states)
    np.testing.assert_allclose(first.values, single.trace.values, rtol=1e-3, atol=1e-5)
    scores = [
        [p for p in trace.scores if "score" in p]
        for trace in (load_trace(tmp_path), second, single.trace)
    ]
    assert len(scores[0]) == 6  # measured by the first process alone
    assert scores[1] == []
    assert [p["open"] for p in scores[0]] == [p["open"] for p in scores[2]]
    assert [p["score"] for p in scores[0]] == pytest.approx([p["score"] for p in scores[2]])
    found = load_file(tmp_path / "weights.safetensors")
    for name, value in single.model.named_parameters():
        torch.testing.assert_close(found[name], value.detach(), rtol=1e-3, atol=1e-5, msg=name)
