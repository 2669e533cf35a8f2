from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from headcount.cli import ls
from headcount.cli.commands import COMMANDS
from headcount.heads import STACKS

Cli = Callable[..., Any]


def test_everything_is_listed(cli: Cli) -> None:
    found = json.loads(cli("ls", "--json").out)
    assert list(found) == ls.kinds()
    assert {"commands", "extras", "stacks"} <= set(found)
    assert [row["name"] for row in found["stacks"]] == list(STACKS)
    assert {"ls", "doctor"} <= {row["name"] for row in found["commands"]}
    assert all(set(row) == {"name", "summary"} for rows in found.values() for row in rows)


def test_one_kind(cli: Cli) -> None:
    found = json.loads(cli("ls", "commands", "--json").out)
    assert found == {
        "commands": [{"name": entry.name, "summary": entry.summary} for entry in COMMANDS]
    }


def test_the_table_says_the_same(cli: Cli) -> None:
    ran = cli("ls", "extras")
    assert ran.code == 0
    assert ran.err == ""
    lines = ran.out.splitlines()
    rows = json.loads(cli("ls", "extras", "--json").out)["extras"]
    assert len(lines) == len(rows) + 2
    for line, row in zip(lines[2:], rows, strict=True):
        assert line.split()[:2] == ["extras", row["name"]]
        assert line.endswith(row["summary"])


def test_an_unknown_kind_is_answered_with_the_nearest(cli: Cli) -> None:
    ran = cli("ls", "extra")
    assert ran.code == 2
    assert ran.out == ""
    assert "There is no list of 'extra'. Did you mean 'extras'? Known: commands, " in ran.err


def test_a_room_that_is_not_there_is_left_out(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    monkeypatch.setitem(ls.KINDS, "ghosts", "headcount.nowhere.ghosts:GHOSTS")
    assert "ghosts" not in json.loads(cli("ls", "--json").out)
    assert cli("ls", "ghosts").code == 2


@pytest.mark.parametrize("kind", ls.kinds())
def test_every_entry_can_be_had(kind: str) -> None:
    rows = ls.listing(kind)
    assert rows
    names = [row["name"] for row in rows]
    assert len(set(names)) == len(names)


def test_every_command_is_a_function_with_a_docstring() -> None:
    for entry in COMMANDS:
        command: Any = COMMANDS[entry.name]
        # a command with commands of its own is an app; without one of them it runs its default
        function = getattr(command, "default_command", command)
        assert command.help if function is None else function.__doc__, entry
