"""What --print-config writes is what --config reads, for every option of every command."""

from __future__ import annotations

import inspect
import json
import shlex
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from cyclopts import Argument

from headcount.cli import config
from headcount.cli.commands import COMMANDS
from headcount.cli.main import CommandLine, build
from headcount.cli.values import MaskText, kind_of
from headcount.training.options import PRESETS

STUDY = ("plan", "run", "status", "table", "watch")
LINES = [[entry.name] for entry in COMMANDS if entry.name != "study"]
LINES += [["redundancy", "compare"], *(["study", name] for name in STUDY)]
TYPED = {str: "a b", Path: "x y/z", int: "3", float: "0.25", MaskText: "3,2"}
TYPED |= {float | Literal["free"] | None: "0.25", int | float | None: "0.25"}


def parsed(tokens: list[str], file: Path | None = None) -> tuple[Any, Any, inspect.BoundArguments]:
    app = build(CommandLine(tokens=tokens, config=file))
    function, bound, _ = app.parse_args(tokens)
    commands, apps, _ = app.parse_commands(tokens)
    assert function is apps[-1].default_command
    return apps[-1], commands, bound


def arguments(words: list[str]) -> list[Argument]:
    return _arguments(tuple(words))


@cache
def _arguments(words: tuple[str, ...]) -> list[Argument]:
    apps = build(CommandLine(tokens=list(words))).parse_commands(words)[1]
    return [each for each in apps[-1].assemble_argument_collection() if each.parse]


def typed(argument: Argument) -> list[str]:
    """The option with some value that is not its default."""
    kind, several = kind_of(argument.hint)
    if kind is bool:
        on = argument.names[0]
        return [argument.negatives[0] if argument.field_info.default is True else on]
    value = get_args(kind)[-1] if get_origin(kind) is Literal else TYPED[kind]
    return [argument.names[0], value, *([value + "1"] if several else [])]


def full(words: list[str]) -> list[str]:
    """A command line with every option of a command."""
    leaves = [each for each in arguments(words) if not each.children]
    placed = [each for each in leaves if not each.names[0].startswith("--")]
    options = [token for each in leaves if each not in placed for token in typed(each)]
    return [*words, *(f"m{place}" for place in range(len(placed))), *options]


@pytest.mark.parametrize("words", LINES, ids=" ".join)
def test_no_two_options_have_one_name(words: list[str]) -> None:
    names = [name for each in arguments(words) if not each.children for name in each.names]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("words", LINES, ids=" ".join)
def test_every_option_comes_back(words: list[str], tmp_path: Path) -> None:
    app, commands, bound = parsed(full(words))
    file = tmp_path / "c.toml"
    file.write_text(config.write(app, commands, bound))
    assert "# " not in file.read_text(), "every option was given a value"
    again = parsed(words, file)
    again[2].apply_defaults()
    assert again[2].arguments == bound.arguments
    assert config.write(*again) == file.read_text()


@pytest.mark.parametrize("words", LINES, ids=" ".join)
def test_what_must_be_given_alone_comes_back(words: list[str], tmp_path: Path) -> None:
    needed = []
    for each in arguments(words):
        if each.required and not each.children:
            needed += typed(each) if each.names[0].startswith("--") else ["m"]
    app, commands, bound = parsed([*words, *needed])
    file = tmp_path / "c.toml"
    file.write_text(config.write(app, commands, bound))
    again = parsed(words, file)
    again[2].apply_defaults()
    assert again[2].arguments == bound.arguments
    assert config.write(*again) == file.read_text()


def test_a_preset_is_not_overruled_by_what_nobody_typed(tmp_path: Path) -> None:
    words = ["train", "m", "--task", "cola", "--out", "o", "--preset", "pocket", "--epochs", "2"]
    app, commands, bound = parsed(words)
    file = tmp_path / "c.toml"
    file.write_text(config.write(app, commands, bound))
    pocket = PRESETS["pocket"]
    training = parsed(["train"], file)[2].arguments["training"]
    assert training.on(pocket) == bound.arguments["training"].on(pocket)
    assert (training.on(pocket).learning_rate, training.on(pocket).epochs) == (3e-4, 2)


@pytest.mark.parametrize("text", ["steps = 1.5", "steps = '1.5'", "steps = true"])
def test_a_number_of_things_is_not_rounded(cli: Any, tmp_path: Path, text: str) -> None:
    file = tmp_path / "c.toml"
    file.write_text(f"[train]\nmodel = 'm'\ntask = 'cola'\nout = 'o'\n{text}\n")
    ran = cli("train", "--config", file, "--print-config")
    assert ran.code == 2
    assert "steps" in ran.err
    assert "int" in ran.err
    assert cli("train", "m", "--task", "cola", "--out", "o", "--steps", "1.5").code == 2


def test_the_section_of_a_command_below_is_not_an_option(cli: Any, tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text("[redundancy]\nmodel = 'm'\n[redundancy.compare]\nfiles = ['a', 'b']\n")
    assert "m" in cli("redundancy", "--config", file, "--print-config").out
    assert '"b"' in cli("redundancy", "compare", "--config", file, "--print-config").out
    file.write_text("[redundancy]\nmodel = 'm'\n[redundancy.compar]\nfiles = ['a', 'b']\n")
    assert "no option 'compar'" in cli("redundancy", "--config", file, "--print-config").err


@pytest.mark.parametrize("text", ["ratio = [0.1, 0.2]", "ratio = {a = 1}", "figure = [['a']]"])
def test_a_value_of_another_shape_is_refused(cli: Any, tmp_path: Path, text: str) -> None:
    command = "redundancy" if "figure" in text else "prune"
    file = tmp_path / "c.toml"
    file.write_text(f"[{command}]\nmodel = 'm'\nout = 'o'\n{text}\n")
    ran = cli(command, "--config", file, "--print-config")
    assert ran.code == 2
    assert ran.out == ""
    assert text.split()[0] in ran.err


def test_a_record_has_the_whole_line_with_what_the_file_gave(
    cli: Any, folder: Path, tmp_path: Path
) -> None:
    file = tmp_path / "c.toml"
    file.write_text(
        f"[evaluate]\nmodel = '{folder}'\ntask = 'pocket-sentiment'\nlimit = 8\nbootstrap = 5\n"
    )
    ran = cli("evaluate", "--config", file, "--bootstrap", 6, "--json")
    assert ran.code == 0, ran.err
    first = json.loads(ran.out)
    program, *words = shlex.split(first["command"])
    assert program == "headcount"
    assert "--config" not in words
    again = json.loads(cli(*words).out)
    assert (again["id"], again["scores"]) == (first["id"], first["scores"])


def test_many_unknown_keys_are_a_bounded_sentence(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[str] = []
    monkeypatch.setattr(config, "did_you_mean", lambda name, known: str(compared.append(name)))
    lines = "".join(f"unknown_{number} = {number}\n" for number in range(20_000))
    (tmp_path / "a.toml").write_text("[inspect]\n" + lines)
    ran = cli("inspect", "pocket", "--config", str(tmp_path / "a.toml"))
    assert ran.code == 2
    assert "there is no option 'unknown_0'." in ran.err
    assert "20,000 options are in its section" in ran.err
    assert len(compared) < 20  # each comparison looks at every option there is
    assert len(ran.err) < 1100


def test_many_sections_are_a_bounded_sentence(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("".join(f"[s{number}]\n" for number in range(20_000)))
    ran = cli("inspect", "pocket", "--config", str(tmp_path / "a.toml"))
    assert ran.code == 2
    assert "has no section [inspect]; its sections: [s0], " in ran.err
    assert ran.err.endswith(" and 19,992 more.\n")
