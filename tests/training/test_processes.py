"""Runs that are killed, and runs in two processes."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from launching import in_two_processes, python

from .child import RESUMED, run, still

CHILD = Path(__file__).with_name("child.py")


def weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.detach() for name, value in model.named_parameters()}


@pytest.mark.parametrize(
    ("kind", "kill_at", "step"), [("classification", 15, 6), ("masked-lm", 8, 3)]
)
def test_killed_and_resumed_is_the_same_bit_for_bit(
    kind: str, kill_at: int, step: int, tmp_path: Path
) -> None:
    done = python(CHILD, kind, tmp_path, kill_at)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not (tmp_path / "result.json").exists()
    resumed = run(kind, tmp_path, RESUMED)
    assert resumed.resumed_from == step
    assert resumed.steps == 10
    whole = run(kind, None, RESUMED)
    for name, value in weights(whole.model).items():
        assert torch.equal(value, weights(resumed.model)[name]), name
    assert resumed.curve == whole.curve


def test_two_processes_give_what_one_gives(tmp_path: Path) -> None:
    # 70 rows in batches of 16: the last one leaves the second process with nothing but blank rows
    said = in_two_processes(CHILD, "classification", tmp_path, 0)
    assert said.split() == ["2"]  # processes, said by the first
    single = run("classification", None, still(RESUMED))
    found = load_file(tmp_path / "model.safetensors")
    for name, value in weights(single.model).items():
        torch.testing.assert_close(found[name], value, rtol=1e-4, atol=2e-6, msg=name)
    lines = (tmp_path / "curve.jsonl").read_text().splitlines()
    for line, point in zip(lines, single.curve, strict=True):
        assert json.loads(line)["loss"] == pytest.approx(point["loss"], rel=1e-4)
        assert json.loads(line)["grad_norm"] == pytest.approx(point["grad_norm"], rel=1e-3)
