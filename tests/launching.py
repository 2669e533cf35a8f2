"""Python in processes of its own, for tests that kill one or start two."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

import torch

TWO = ["-m", "accelerate.commands.launch", "--num_processes", "2"]
# accelerate has no launcher for processes on CPUs; without GPUs this one starts them
TWO += ["--multi_gpu", "--num_machines", "1", "--mixed_precision", "no"]
TWO += ["--dynamo_backend", "no", "--main_process_port", "0"]


def python(*words: object, threads: int | None = None) -> subprocess.CompletedProcess[str]:
    """Run and wait; with as many threads as here, so that sums come out the same."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads or torch.get_num_threads())}
    command = [sys.executable, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def in_two_processes(*words: object) -> str:
    """What both of them printed."""
    done = python(*TWO, *words, threads=1)
    assert done.returncode == 0, done.stderr
    return done.stdout


def kill_at(model: Any, passes: int) -> None:
    """Let the model kill its process in this forward pass, counted from 1; 0 for never."""
    seen = 0

    def count(*_: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == passes:
            os.kill(os.getpid(), signal.SIGKILL)

    model.register_forward_pre_hook(count)
