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
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

from cyclopts import App, ArgumentCollection, CycloptsError
from cyclopts.config import Dict

from headcount.cli.common import plain
from headcount.errors import NotFoundError, UsageError, did_you_mean

Provider = Callable[[App, tuple[str, ...], ArgumentCollection], None]


def read(path: Path) -> Provider:
    """What hands the options in `path` to cyclopts; all mistakes of the file are said at once."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise NotFoundError(f"Cannot read the config file '{path}': {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"The config file '{path}' is not TOML: {error}.") from error

    def provide(app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
        section = _section(data, commands, path)
        mistakes = list(_unknown(section, arguments))
        if not mistakes:
            Dict(data, source=str(path))(app, commands, arguments)
            mistakes = list(_unreadable(arguments, str(path)))
        if mistakes:
            raise UsageError(f"In the config file '{path}': {' '.join(mistakes)}")

    return provide


def _section(data: dict[str, Any], commands: tuple[str, ...], path: Path) -> dict[str, Any]:
    section: Any = data
    for at, name in enumerate(commands):
        known = [key for key, value in section.items() if isinstance(value, dict)]
        if name not in known:
            title = ".".join(commands[: at + 1])
            there = ", ".join(f"[{key}]" for key in known) or "none"
            raise UsageError(
                f"The config file '{path}' has no section [{title}]; its sections: {there}."
            )
        section = section[name]
    return section


def _unknown(section: dict[str, Any], arguments: ArgumentCollection) -> Iterator[str]:
    known = {
        name.removeprefix("--")
        for argument in arguments
        for name in argument.names
        if name.startswith("--")
    }
    for key in section:
        if key.replace("_", "-") not in known:
            yield f"there is no option '{key}'.{did_you_mean(key, known)}"


def _unreadable(arguments: ArgumentCollection, source: str) -> Iterator[str]:
    for argument in arguments:
        if any(token.source == source for token in argument.tokens):
            try:
                argument.convert()
            except CycloptsError as error:
                error.verbose = False
                yield str(error)


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
            value = getattr(value, key, None)
        if argument.parse and not argument.children:
            lines.append(_line(argument.name.removeprefix("--"), value))
    return "\n".join(lines) + "\n"


def _line(name: str, value: Any) -> str:
    value = plain(value.name if isinstance(value, Enum) else value)
    if value is None:
        return f"# {name} ="  # TOML has no null: not set
    if isinstance(value, float):
        return f"{name} = {value!r}"
    # A JSON string, number, bool or list reads the same in TOML, but for the one control
    # character that JSON leaves as it is.
    return f"{name} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f")
