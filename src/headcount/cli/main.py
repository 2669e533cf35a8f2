"""The command line: finds the command, runs it, and turns every failure into one sentence.

Nothing heavy is imported here: `headcount --help` answers without torch.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cyclopts import App, Parameter
from cyclopts.help import DefaultFormatter, PanelSpec
from rich import box

from headcount import __version__
from headcount.base.errors import UsageError
from headcount.base.names import did_you_mean
from headcount.base.plugins import load_plugin
from headcount.cli import config
from headcount.cli.commands import COMMANDS
from headcount.cli.common import notes, say, stdout
from headcount.cli.early import check
from headcount.cli.failures import PIPE_CLOSED, explain
from headcount.cli.progress import alive
from headcount.cli.values import tidy

PANEL = PanelSpec(box=box.SIMPLE_HEAD, padding=(0, 0))
"""Options in groups without frames around them: the help of a command fits a screen."""
ABOUT = "How many attention heads does your transformer need?"
EPILOGUE = """\
With every command:

- `--config FILE`: take options from the command's section of a TOML file.
- `--print-config`: print the options as such a file, and stop.
- `--plugin FILE`: execute a script first that adds methods, repairs, tasks or distances.
- `--debug`: show the whole traceback when something fails.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 missing extra, 4 not found, 5 not supported,
6 part of a study failed or a bound not met, 130 interrupted."""


@dataclass(kw_only=True)
class CommandLine:
    """A command line without the options that work everywhere."""

    tokens: list[str]
    debug: bool = False
    print_config: bool = False
    config: Path | None = None
    plugins: list[str] = field(default_factory=list)
    """Scripts to execute before the options are read."""
    filled: dict[str, list[str]] = field(default_factory=dict)
    """The words of the options that the config file gave, by the name of each."""

    @classmethod
    def read(cls, argv: Sequence[str]) -> CommandLine:
        """Take the options out that every command has, wherever they stand."""
        line = cls(tokens=[])
        tokens = iter(argv)
        for token in tokens:
            if token == "--":  # what follows is not ours to read
                line.tokens += [token, *tokens]
            elif token == "--debug":
                line.debug = True
            elif token == "--print-config":
                line.print_config = True
            elif token == "--config" or token.startswith("--config="):
                file = token.partition("=")[2] or next(tokens, "")
                if not file:
                    raise UsageError("--config needs a file.")
                line.config = Path(file)
            elif token == "--plugin" or token.startswith("--plugin="):
                file = token.partition("=")[2] or next(tokens, "")
                if not file:
                    raise UsageError("--plugin needs a file.")
                line.plugins.append(file)
            else:
                line.tokens.append(token)
        return line

    @property
    def whole(self) -> list[str]:
        """The command line with its plugins, and what came from the config file typed out."""
        places = [word for key, words in self.filled.items() if not key for word in words]
        named = [word for key, words in self.filled.items() if key for word in words]
        at = 1 + self.tokens.index(self.command) if self.command else 0
        plugins = [word for file in self.plugins for word in ("--plugin", file)]
        return [*self.tokens[:at], *places, *self.tokens[at:], *named, *plugins]

    @property
    def command(self) -> str | None:
        """The first word that is no option."""
        return next((token for token in self.tokens if not token.startswith("-")), None)


def build(line: CommandLine) -> App:
    """The cyclopts app. The chosen command speaks for itself, the others in one line."""
    if line.command is not None and line.command not in COMMANDS:
        hint = did_you_mean(line.command, [entry.name for entry in COMMANDS])
        raise UsageError(f"There is no command '{line.command}'.{hint} See headcount --help.")
    app = App(
        name="headcount",
        help=ABOUT,
        help_format="markdown",
        help_epilogue=EPILOGUE if line.command is None else None,
        help_formatter=DefaultFormatter(panel_spec=PANEL),
        version=f"headcount {__version__}",
        version_format="plaintext",
        default_parameter=Parameter(
            negative_iterable=(), consume_multiple=True, show_default=as_typed
        ),
        config=[*([config.read(line.config, line.filled)] if line.config else []), tidy],
        console=stdout(),
        print_error=False,
        exit_on_error=False,
    )
    for entry in COMMANDS:
        summary = None if entry.name == line.command else entry.summary
        if entry.name == line.command:
            function = COMMANDS[entry.name]
            if "cut" in getattr(function, "__annotations__", {}):  # a command that prunes
                from headcount.cli.method_options import help_for

                help_for(function, line.tokens)
        app.command(str(entry.target), name=entry.name, help=summary)
    return app


def as_typed(value: object) -> str | None:
    """A default as it would be typed; a switch that is off says nothing."""
    if value is None or value is False or value == ():
        return None
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def run(line: CommandLine) -> int:
    """Run the command and give back its exit code."""
    for script in line.plugins:
        load_plugin(script)
    app = build(line)
    function, bound, _ = app.parse_args(line.tokens)
    commands, apps, _ = app.parse_commands(line.tokens)
    if line.print_config and commands and function is apps[-1].default_command:
        sys.stdout.write(config.write(apps[-1], commands, bound))
        return 0
    check(line.command or "", bound.arguments)
    with alive(line.command or "", line.whole):
        code = function(*bound.args, **bound.kwargs)
    return code if isinstance(code, int) else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (`sys.argv` when none is given); returns the exit code."""
    argv = sys.argv[1:] if argv is None else argv
    try:
        with notes():
            code = run(CommandLine.read(argv))
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        return PIPE_CLOSED  # the reader (head, less) has seen enough
    except (SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic in a Rust library is no Exception
        if "--debug" in argv:
            traceback.print_exc()
        sentence, code = explain(error)
        say(f"headcount: {sentence}")
        return code
