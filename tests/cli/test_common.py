from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable

import pytest
from rich.text import Text

from headcount.cli import main as program
from headcount.cli.common import emit, notes, say
from headcount.views.tables.columns import Column, built, table

EVIL = "a\x1b]0;title\x07\x9b2J\u202eb"
SHOWN = r"a\x1b]0;title\x07\x9b2J\u202eb"


@pytest.mark.parametrize("terminal", [True, False])
def test_a_name_commands_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], terminal: bool
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    for what in (
        table(["name"], [[EVIL]]),
        table([EVIL], [["x"]], title=EVIL),
        built([Column(title="name", cells=[EVIL], weight=1)]),
        Text(EVIL.replace("\x07", "")),  # rich drops this one
    ):
        emit({}, as_json=False, table=what)
        out = capsys.readouterr().out
        assert SHOWN in out or SHOWN.replace(r"\x07", "") in out
        assert not set(out) & set("\x1b\x07\x9b\u202e")
    say(EVIL + "\nand more")
    assert capsys.readouterr().err == SHOWN + "\nand more\n"


def test_json_holds_a_name_as_it_is_and_shows_it_escaped(
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = EVIL + "\ud800"
    emit({name: name}, as_json=True, table=Text(""))
    out = capsys.readouterr().out
    assert json.loads(out) == {name: name}
    assert not set(out) & {"\x1b", "\x9b", "\u202e", "\ud800"}


class PanicException(BaseException):
    """As pyo3 makes one of a Rust panic."""


@pytest.mark.parametrize(
    ("error", "code"), [(PanicException("no entry found"), 1), (KeyboardInterrupt(), 130)]
)
def test_a_panic_is_one_sentence_too(
    monkeypatch: pytest.MonkeyPatch, cli: Callable[..., object], error: BaseException, code: int
) -> None:
    def fail(line: object) -> int:
        raise error

    monkeypatch.setattr(program, "run", fail)
    ran = cli("ls")
    assert ran.code == code  # pyright: ignore[reportAttributeAccessIssue]
    assert ran.err.count("\n") == 1  # pyright: ignore[reportAttributeAccessIssue]


def test_a_note_inside_a_command_of_the_demo_is_told_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with notes(), notes():
        logging.getLogger("headcount").warning("once")
    assert capsys.readouterr().err == "headcount: once\n"
