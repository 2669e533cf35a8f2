"""`--config FILE` and `--print-config`: a command's options from and to a TOML file.

The file has one section per command; an option on the command line wins over the file.

    [prune]
    model = "bert-base-uncased"
    ratio = 0.5
"""

from __future__ import annotations

import inspect
import json
import tomllib
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

from cyclopts import App, Argument, ArgumentCollection, CycloptsError, Token

from headcount.base.errors import UsageError
from headcount.base.files import read_text
from headcount.base.names import LONGEST, did_you_mean
from headcount.cli.common import plain
from headcount.cli.values import Provider, kind_of, tidy_argument

SHOWN = 8
"""Mistakes and sections of a file that a refusal names."""


def read(path: Path, filled: dict[str, list[str]] | None = None) -> Provider:
    """What hands the options in `path` to cyclopts; all mistakes of the file are reported at once.

    `filled` takes those that were handed over as words of a command line, by their option.
    """
    text = read_text(path, "config file")
    try:
        data = tomllib.loads(text)
    except RecursionError as error:
        raise UsageError(f"The config file '{path}' is nested too deeply.") from error
    except ValueError as error:  # a TOMLDecodeError, or a number with too many digits
        raise UsageError(f"The config file '{path}' is not TOML: {error}.") from error

    def provide(app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
        section = _section(data, commands, path)
        known = _by_key(arguments)
        mistakes: list[str] = []
        for key, value in section.items():
            if isinstance(value, dict) and key in app:
                continue  # the section of a command below this one
            argument = known.get(key.replace("_", "-"))
            if len(mistakes) > SHOWN:
                mistakes[SHOWN] = f"And more: {len(section):,} options are in its section."
                break  # each is compared with all options there are, and none of them is read
            if argument is None:
                hint = did_you_mean(key, known)
                mistakes.append(f"there is no option '{key[:LONGEST]}'.{hint}")
            elif not argument.tokens:  # the command line wins
                mistakes += _fill(argument, key, value, str(path))
                if filled is not None:
                    option, words = _words(argument, value)
                    filled[option] = words
        if mistakes:
            raise UsageError(f"In the config file '{path}': {' '.join(mistakes)}")

    return provide


def _section(data: dict[str, Any], commands: tuple[str, ...], path: Path) -> dict[str, Any]:
    section: Any = data
    for at, name in enumerate(commands):
        known = [key for key, value in section.items() if isinstance(value, dict)]
        if name not in known:
            title = ".".join(commands[: at + 1])
            listed = ", ".join(f"[{key}]" for key in known[:SHOWN]) or "none"
            listed += f" and {len(known) - SHOWN:,} more" if len(known) > SHOWN else ""
            raise UsageError(
                f"The config file '{path}' has no section [{title}]; its sections: {listed}."
            )
        section = section[name]
    return section


def _by_key(arguments: ArgumentCollection) -> dict[str, Argument]:
    """What an option is called in a file -> the option."""
    return {
        name: argument
        for argument in arguments
        if argument.parse and not argument.children
        for name in _keys(argument)
    }


def _keys(argument: Argument) -> list[str]:
    named = [name.removeprefix("--") for name in argument.names if name.startswith("--")]
    # an argument that has a place and no name is called as in the help, in small letters
    return named or [argument.name.lower().replace("_", "-")]


def _fill(argument: Argument, key: str, value: object, source: str) -> Iterator[str]:
    """Give the option its value; what is wrong with it, as a sentence."""
    several = kind_of(argument.hint)[1]
    items = value if several and isinstance(value, list) else [value]
    if any(isinstance(item, dict | list) for item in items):
        yield f"'{key}' is {'a list of values' if several else 'one value'}, not {value}."
        return
    for index, item in enumerate(items):
        text = str(item).lower() if isinstance(item, bool) else str(item)
        argument.tokens.append(Token(keyword=f"[{key}]", value=text, source=source, index=index))
    try:
        tidy_argument(argument)
        if argument.tokens:
            argument.convert()
    except CycloptsError as error:
        error.verbose = False
        yield str(error)


def _words(argument: Argument, value: object) -> tuple[str, list[str]]:
    """(The option, nothing for an argument by its place; it and its value as they are typed.)"""
    name = next((name for name in argument.names if name.startswith("--")), "")
    if isinstance(value, bool):
        return name, [name if value else f"--no-{name.removeprefix('--')}"]
    values = [str(item) for item in value] if isinstance(value, list) else [str(value)]
    return name, [name, *values] if name else values


def write(app: App, commands: tuple[str, ...], bound: inspect.BoundArguments) -> str:
    """The options a command would run with, as the TOML that `--config` reads."""
    bound.apply_defaults()
    lines = [f"[{'.'.join(commands)}]"]
    parameter: Any = None
    for argument in app.assemble_argument_collection():
        if not argument.keys:
            parameter = bound.arguments.get(argument.field_info.name)
        value = parameter
        for key in argument.keys:  # a field of the dataclass parameter that came just before
            # what was not typed is left to the preset, and must not be typed by the file
            typed = getattr(value, "given", None)
            left = isinstance(typed, tuple) and key not in typed
            value = None if left else getattr(value, key, None)
        if argument.parse and not argument.children:
            lines.append(_line(_keys(argument)[0], value))
    return "\n".join(lines) + "\n"


def _line(name: str, value: object) -> str:
    value = plain(value.name if isinstance(value, Enum) else value)
    if value is None or value == []:
        return f"# {name} ="  # TOML has no null: not set
    if isinstance(value, float):
        return f"{name} = {value!r}"
    # A JSON string, number, bool or list reads the same in TOML, but for the one control
    # character that JSON leaves as it is.
    return f"{name} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f")
