from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from cyclopts import Parameter
from rich.text import Text

import headcount
from headcount.base.errors import MissingExtraError, NotFoundError, StudyError, UnsupportedError
from headcount.base.registry import Registry
from headcount.cli import common, main
from headcount.cli.common import emit, plain
from headcount.cli.progress import progress
from headcount.views.tables.columns import table

Cli = Callable[..., Any]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Common:
    """Options as a group."""

    device: str = "auto"
    """Where to run."""
    seed: int = 0
    limit: int | None = None
    dry_run: bool = False


COMMON = Common()


def dummy(
    thing: str,
    *,
    ratio: float = 0.5,
    layers: list[int] | None = None,
    kind: Literal["a", "b"] = "a",
    out: Path | None = None,
    common: Common = COMMON,
) -> int | None:
    """Do something small.

    Parameters
    ----------
    thing
        What to do it to.
    """
    if thing == "seven":
        return 7
    if isinstance(FAIL, BaseException):
        raise FAIL
    found = {"thing": thing, "ratio": ratio, "layers": layers, "kind": kind, "out": out}
    emit({**found, "common": common}, as_json=True, table="")
    return None


FAIL: BaseException | None = None


@pytest.fixture(autouse=True)
def commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real commands and a dummy one."""
    registry = Registry("command")
    for entry in main.COMMANDS:
        registry.add(entry.name, entry.target, entry.summary)
    sys.modules.setdefault("headcount_dummy", sys.modules[__name__])
    registry.add("dummy", "headcount_dummy:dummy", "A dummy, in short.")
    monkeypatch.setattr(main, "COMMANDS", registry)


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    return lambda error: monkeypatch.setattr(sys.modules["headcount_dummy"], "FAIL", error)


# --- finding a command ---


def test_help_lists_commands_with_their_summaries(cli: Cli) -> None:
    ran = cli("--help")
    assert ran.code == 0
    assert ran.err == ""
    for words in ("doctor", "A dummy, in short.", "--print-config", "Exit codes"):
        assert words in ran.out


def test_no_command_is_a_call_for_help(cli: Cli) -> None:
    assert cli().out == cli("--help").out


def test_a_command_speaks_for_itself_in_its_own_help(cli: Cli) -> None:
    ran = cli("dummy", "--help")
    assert ran.code == 0
    for words in ("Do something small.", "What to do it to.", "--device", "--dry-run", "--limit"):
        assert words in ran.out
    assert "A dummy, in short." not in ran.out


def test_examples_stand_one_a_line(cli: Cli) -> None:
    below = [("redundancy", "compare"), *(("study", verb) for verb in ("plan", "run", "table"))]
    with_examples = 0
    for tokens in [*((entry.name,) for entry in main.COMMANDS), *below]:
        lines = [line.strip() for line in cli(*tokens, "--help").out.splitlines()]
        assert not any(line.startswith("Examples: ") or " · " in line for line in lines), tokens
        if "Examples:" in lines:
            with_examples += 1
            shown = lines[lines.index("Examples:") + 2 :]
            shown = shown[: shown.index("")]
            begun = [line for line in shown if line.startswith(f"• headcount {' '.join(tokens)}")]
            assert begun, tokens
            assert "\n".join(shown).count("headcount ") == sum(line[0] == "•" for line in shown)
    assert with_examples >= 22


def test_defaults_are_shown_as_they_would_be_typed(cli: Cli) -> None:
    shown = " ".join(cli("curve", "--help").out.split())
    assert "[default: random cluster importance]" in shown
    assert "default: False" not in shown
    assert "default: None" not in shown


def test_version(cli: Cli) -> None:
    ran = cli("--version")
    assert (ran.code, ran.out) == (0, f"headcount {headcount.__version__}\n")


def test_a_command_gives_its_exit_code(cli: Cli) -> None:
    assert cli("dummy", "seven").code == 7


# --- wrong usage ---


@pytest.mark.parametrize(
    ("tokens", "sentence"),
    [
        (["doctr"], "There is no command 'doctr'. Did you mean 'doctor'? See headcount --help."),
        (["xyzzy"], "There is no command 'xyzzy'. See headcount --help."),
        (["doctr", "--help"], "There is no command 'doctr'. Did you mean 'doctor'?"),
        (["dummy", "m", "--rato", "1"], "Unknown option: --rato. Did you mean --ratio?"),
        (["dummy", "m", "--ratio", "half"], "--ratio is a number, not 'half'."),
        (["dummy", "m", "--ratio"], "--ratio needs a value."),
        (["dummy", "m", "n"], "Too many arguments: n."),
        (["dummy"], "headcount: dummy needs --thing: see headcount dummy --help."),
        (["--jsn"], "--jsn"),
        (["dummy", "m", "--config"], "--config needs a file."),
    ],
)
def test_wrong_usage_is_one_sentence_and_2(cli: Cli, tokens: list[str], sentence: str) -> None:
    ran = cli(*tokens)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("headcount: ")
    assert sentence in ran.err
    assert ran.err.count("\n") == 1


# --- failing ---


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (MissingExtraError("pip install 'headcount[mt]'"), 3, "pip install 'headcount[mt]'"),
        (NotFoundError("No model there."), 4, "No model there."),
        (UnsupportedError("No attention."), 5, "No attention."),
        (StudyError("2 of 3 runs failed."), 6, "2 of 3 runs failed."),
        (KeyboardInterrupt(), 130, "Interrupted."),
        (MemoryError(), 1, "Not enough memory. Try"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: x"), 1, "Not enough memory."),
        (OSError(errno.ENOSPC, "No space left", "a.bin"), 1, "No space left (a.bin). Free"),
        (OSError(errno.EDQUOT, None), 1, "Free some space or write elsewhere"),
        (RuntimeError("PytorchStreamWriter failed writing: file write failed"), 1, "Free some"),
        (OSError("4096 requested and 512 written"), 1, "Cannot write: No space left on device."),
        (PermissionError(errno.EACCES, "Permission denied", "out"), 1, "Permission denied (out)."),
        (OSError(errno.ENOSPC, None), 1, "No space left on device."),
        (ModuleNotFoundError("no torch", name="torch"), 3, "not installed: pip install torch"),
        (ModuleNotFoundError("no", name="sklearn"), 3, "pip install scikit-learn"),
        (KeyError("x"), 1, "Unexpected KeyError: 'x' (run again with --debug"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)  # fmt: skip
def test_a_failure_is_one_sentence_and_its_code(
    cli: Cli,
    fails: Callable[[BaseException], None],
    error: BaseException,
    code: int,
    sentence: str,
) -> None:
    fails(error)
    ran = cli("dummy", "m")
    assert ran.code == code
    assert ran.out == ""
    assert sentence in ran.err
    assert ran.err.startswith("headcount: ")
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("tokens", [["--debug", "dummy", "m"], ["dummy", "m", "--debug"]])
def test_debug_shows_the_traceback_and_keeps_the_code(
    cli: Cli, fails: Callable[[BaseException], None], tokens: list[str]
) -> None:
    fails(NotFoundError("No model there."))
    ran = cli(*tokens)
    assert ran.code == 4
    assert "Traceback" in ran.err
    assert ran.err.endswith("headcount: No model there.\n")


def test_after_two_dashes_everything_is_an_argument(cli: Cli) -> None:
    ran = cli("dummy", "--", "--debug")
    assert json.loads(ran.out)["thing"] == "--debug"


def test_a_closed_pipe_ends_quietly() -> None:
    for tokens in ("ls", "ls --json", "--help"):
        command = f"{{ sleep 0.3; {sys.executable} -m headcount {tokens}; echo $? >&2; }} | :"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
        assert done.stderr == "141\n"


def test_it_can_be_run_as_a_module_and_leaves_with_the_code() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "headcount", "nope"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("headcount: There is no command 'nope'.")


# --- options from a file ---


def test_print_config_can_be_read_back(cli: Cli, tmp_path: Path) -> None:
    given = ["dummy", 'a "quoted" name \x7f', "--ratio", "0.25", "--layers", "1", "--layers", "2"]
    given += ["--out", "x/y", "--seed", "3", "--dry-run", "--kind", "b"]
    printed = cli(*given, "--print-config")
    assert printed.code == 0
    assert "[dummy]" in printed.out
    assert "# limit =" in printed.out
    file = tmp_path / "c.toml"
    file.write_text(printed.out)
    assert json.loads(cli("dummy", "--config", file).out) == json.loads(cli(*given).out)
    assert cli("dummy", f"--config={file}", "--print-config").out == printed.out


def test_the_command_line_wins_over_the_file(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('[dummy]\nthing = "file"\nratio = 0.1\nseed = 5\n[other]\nx = 1\n')
    found = json.loads(cli("--config", file, "dummy", "--ratio", "0.9").out)
    assert (found["thing"], found["ratio"], found["common"]["seed"]) == ("file", 0.9, 5)


def test_a_dash_or_an_underscore_in_the_file(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    for name in ("dry-run", "dry_run"):
        file.write_text(f'[dummy]\nthing = "m"\n{name} = true\n')
        assert json.loads(cli("dummy", "--config", file).out)["common"]["dry_run"] is True


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("[dummy]\nrato = 1\nsed = 2", 2, ["'rato'. Did you mean 'ratio'?", "you mean 'seed'?"]),
        ("[dummy]\nratio = 'x'\nseed = 'y'", 2, ['"x"', '"y"', "ratio", "seed"]),
        ("[dumy]\nratio = 1", 2, ["no section [dummy]", "[dumy]"]),
        ("dummy = 3", 2, ["no section [dummy]"]),
        ("ratio = ", 2, ["is not TOML"]),
        (None, 4, ["Cannot read the config file"]),
    ],
)  # fmt: skip
def test_mistakes_in_the_file_are_told_at_once(
    cli: Cli, tmp_path: Path, text: str | None, code: int, words: list[str]
) -> None:
    file = tmp_path / "c.toml"
    if text is not None:
        file.write_text(text)
    ran = cli("dummy", "m", "--config", file)
    assert ran.code == code
    assert ran.out == ""
    for word in [*words, "c.toml"]:
        assert word in ran.err


# --- output ---


def test_json_is_plain() -> None:
    import numpy as np

    from headcount.heads import Layout, Mask

    layout = Layout.of(encoder=[2])
    value = {
        "nan": float("nan"),
        "inf": np.float32("inf"),
        "path": Path("a/b"),
        "array": np.arange(2),
        "mask": Mask.full(layout),
        "options": Common(seed=1),
        3: (True, None),
    }
    assert plain(value) == {
        "nan": None,
        "inf": None,
        "path": "a/b",
        "array": [0, 1],
        "mask": Mask.full(layout).to_json(),
        "options": {"device": "auto", "seed": 1, "limit": None, "dry_run": False},
        "3": [True, None],
    }


def test_a_table_in_a_pipe_is_not_wrapped(capsys: pytest.CaptureFixture[str]) -> None:
    long = "word " * 60
    emit({}, as_json=False, table=table(["a", "number"], [(long + "end", 1), ("[b]x[/b]", 22)]))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert long + "end" in lines[2]
    assert lines[3].strip().startswith("[b]x[/b]")
    assert lines[2].endswith("  1")
    assert len(lines[2]) == len(lines[3])  # numbers stand on the right
    assert all(line == line.rstrip() for line in lines)


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch, stream: str) -> Generator[list[str]]:
    """A terminal in the place of stdout or stderr; what it showed is in the list afterwards."""
    master, slave = os.openpty()
    os.set_blocking(master, False)  # a terminal that shows nothing must not stop the test
    seen: list[str] = []
    with os.fdopen(slave, "w") as screen, monkeypatch.context() as patch:
        patch.setattr(sys, stream, screen)
        yield seen
        screen.flush()
        with suppress(BlockingIOError):
            seen.append(os.read(master, 10_000).decode())
    os.close(master)


@pytest.mark.parametrize(("no_color", "coloured"), [(None, True), ("1", False)])
def test_colour_is_for_terminals_that_want_it(
    monkeypatch: pytest.MonkeyPatch, no_color: str | None, coloured: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color:
        monkeypatch.setenv("NO_COLOR", no_color)
    with terminal(monkeypatch, "stdout") as seen:
        emit({}, as_json=False, table=Text("red", style="bold red"))
    assert "red" in "".join(seen)
    assert ("31m" in "".join(seen)) is coloured


def test_progress_is_silent_without_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    assert list(progress(iter([1, 2, 3]), "counting")) == [1, 2, 3]
    assert capfd.readouterr() == ("", "")


def test_progress_goes_to_the_terminal_on_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch, "stderr") as seen:
        assert list(progress([1, 2], "counting heads")) == [1, 2]
    assert "counting heads" in "".join(seen)


def test_a_log_on_a_full_disk_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def write(text: str) -> int:
        tried.append(text)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys.stderr, "write", write)
    common.say("hello")
    assert "hello" in tried[0]


def test_say_is_on_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    common.say("hello")
    assert capfd.readouterr() == ("", "hello\n")
