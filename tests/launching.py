"""Python in processes of its own, for tests that kill one or start two."""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import torch

TWO = ["-m", "accelerate.commands.launch", "--num_processes", "2"]
# accelerate has no launcher for processes on CPUs; without GPUs this one starts them
TWO += ["--multi_gpu", "--num_machines", "1", "--mixed_precision", "no"]
TWO += ["--dynamo_backend", "no", "--main_process_port", "0"]
NURSERY = Path(__file__).with_name("nursery.py")


def launched(*words: object) -> str:
    """What two processes printed that `accelerate launch` started."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *TWO, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def nursery() -> subprocess.Popen[str]:
    """Started once; with as many threads as here, so that sums come out the same."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())}
    pipe = subprocess.PIPE
    command = [sys.executable, str(NURSERY)]
    started = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment)
    atexit.register(started.communicate)  # it ends with its input
    return started


def children(*environments: dict[str, str], words: tuple[object, ...]) -> list[Any]:
    """Run a script once with each environment, all at the same time, and wait for them."""
    started = nursery()
    assert started.stdin is not None
    assert started.stdout is not None
    with tempfile.TemporaryDirectory() as folder:
        asked = [
            {"words": [str(word) for word in words], "environment": environment}
            | {name: f"{folder}/{name}-{place}" for name in ("out", "err")}
            for place, environment in enumerate(environments)
        ]
        started.stdin.write(json.dumps(asked) + "\n")
        started.stdin.flush()
        codes = json.loads(started.stdout.readline())
        return [
            subprocess.CompletedProcess(
                one["words"], code, Path(one["out"]).read_text(), Path(one["err"]).read_text()
            )
            for one, code in zip(asked, codes, strict=True)
        ]


def python(*words: object) -> subprocess.CompletedProcess[str]:
    """Run a script and wait."""
    (done,) = children({}, words=words)
    return done


def in_two_processes(*words: object) -> str:
    """What both of them printed; they find each other as `accelerate launch` has it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    shared = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    shared |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    ranks = [{**shared, "RANK": rank, "LOCAL_RANK": rank} for rank in ("0", "1")]
    both = children(*ranks, words=words)
    assert [done.returncode for done in both] == [0, 0], [done.stderr for done in both]
    return "".join(done.stdout for done in both)


def kill_at(model: Any, passes: int) -> None:
    """Let the model kill its process in this forward pass, counted from 1; 0 for never."""
    seen = 0

    def count(*_: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == passes:
            os.kill(os.getpid(), signal.SIGKILL)

    model.register_forward_pre_hook(count)
