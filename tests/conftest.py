"""Shared by all tests: no hub, calm hypothesis, and the command line as a function."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import settings

# Before any test imports transformers: no test may reach for the network.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

# The same examples on every machine, and no deadline: shared machines are slow at times.
settings.register_profile("headcount", derandomize=True, deadline=None, database=None)
settings.load_profile("headcount")


@dataclass(frozen=True)
class Ran:
    """What a command line left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """`cli("ls", "--json")` runs the command in this process."""
    from headcount.cli.main import main

    def run(*tokens: object) -> Ran:
        capfd.readouterr()
        code = main([str(token) for token in tokens])
        out, err = capfd.readouterr()
        return Ran(code, out, err)

    return run
