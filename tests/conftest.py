"""Shared by all tests: no hub, calm hypothesis, and the command line as a function."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings

# Before any test imports transformers: no test may reach for the network.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

# Tests that were started in the background (`nohup make test &`) have inherited deaf ears.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# It sets up logging when it is imported, which closes the handlers there are. absl's, which come
# with rouge-score, then close the stream they write to: here that is pytest's.
with suppress(ImportError):
    import submitit  # noqa: F401

# The same examples on every machine, and no deadline: shared machines are slow at times.
settings.register_profile("headcount", derandomize=True, deadline=None, database=None)
settings.load_profile("headcount")


def pytest_collection_finish() -> None:
    """All that was imported stays."""
    settle()
    gc.set_threshold(50_000, 20, 20)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, object, object]:
    """What a file's tests leave for others, such as the models of the zoo, stays."""
    done = yield
    if nextitem is None or nextitem.path != item.path:
        settle()
    return done


def settle() -> None:
    """Look for garbage once, and never again among what is there now.

    Every training ends with a search of all objects (accelerate's), of which there are millions
    here: it took far longer than the training.
    """
    gc.collect()
    gc.freeze()


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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say plainly what did not run: tests of the page, left out or without a browser."""
    from page.chromium import PROGRAM

    where = Path(__file__).parent / "page"
    config = terminalreporter.config
    asked = [Path(arg.partition("::")[0]).resolve() for arg in config.args]
    left_out = where in (Path(each).resolve() for each in config.getoption("ignore") or ())
    if not any(each == where or each in where.parents for each in asked):
        return
    if left_out or PROGRAM is None:
        why = "they were left out" if left_out else "there is no Chromium on this machine"
        terminalreporter.write_line(
            f"tests/page did NOT run: {why}. `make browser` installs Chromium and runs them."
        )


@pytest.fixture(params=[0o022, 0o077], ids=["shared", "private"])
def odd_rights(request: pytest.FixtureRequest) -> Generator[Callable[[Path], dict[str, str]]]:
    """Under a umask: which folders and files in a folder have other rights than it leaves."""
    mask: int = request.param
    old = os.umask(mask)

    def odd(folder: Path) -> dict[str, str]:
        every = {path: path.stat().st_mode for path in [folder, *folder.rglob("*")]}
        assert len(every) > 1
        return {
            path.name: oct(mode & 0o777)
            for path, mode in every.items()
            if mode & 0o777 != (0o777 if path.is_dir() else 0o666) & ~mask
        }

    try:
        yield odd
    finally:
        os.umask(old)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registries that forget afterwards what was added to them."""
    from headcount.exports.formats import FORMATS
    from headcount.likeness.distances import DISTANCES
    from headcount.pruning.methods import METHODS
    from headcount.repair.repairs import REPAIRS
    from headcount.runs.kinds import KINDS
    from headcount.tasks.catalog import TASKS
    from headcount.tasks.kinds import TASK_KINDS

    for registry in (METHODS, REPAIRS, DISTANCES, TASKS, TASK_KINDS, KINDS, FORMATS):
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))
