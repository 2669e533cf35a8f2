"""Checks of a command line that need no torch, so that mistakes are reported at once.

Options of one name mean the same in every command, so they are checked by their names.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from headcount.base.errors import NotFoundError, UsageError
from headcount.base.names import require
from headcount.base.outputs import require_apart, require_new, require_place, require_replaceable
from headcount.cli.typed import TypedOptions
from headcount.heads import STACKS, Layout
from headcount.models.shipped import require_model
from headcount.runs.advice import choose
from headcount.runs.kinds.prune import FREE, read_ratio

Arguments = Mapping[str, Any]
"""Values by parameter or option."""
MODELS = ("model", "pruned", "pretrained", "finetuned")
NEW = ("prune", "remove", "export", "demo")
"""Commands whose --out is a folder that must be new or empty."""
FILE = ("redundancy", "roles", "importance", "report")
"""Commands whose --out is a file; of the others it is a folder that may be there."""
WRITTEN = ("out", "figure", "predictions", "page", "store", "record", "folder", "folders", "paths")
"""Options and arguments whose paths are written to, or whose folder may be."""


def check(command: str, arguments: Arguments) -> None:
    """Refuse unknown names, ratios out of range, models and folders that cannot be."""
    for group in _groups(arguments):
        group.on()  # options refuse what is wrong with themselves
    given: Arguments = dict(_flat(arguments))
    for name, look in CHECKS.items():
        if given.get(name) is not None:
            look(given[name])
    for name in ("methods", "method"):
        if given.get(name) is not None:
            _methods(given[name], command)
    # of several processes, the first one makes the folder while the others start
    if given.get("out") is not None and os.environ.get("RANK", "0") == "0":
        _out(require_place(given["out"]), command, given)
    for name in MODELS:
        if given.get(name) is not None:
            require_model(given[name])
    _data(given)
    if command == "prune" and "model" in given:
        _require_ratio(given)
    if command == "search":
        _bound(given)


def _groups(arguments: Arguments) -> Iterable[TypedOptions[Any]]:
    """The options that were typed, class by class."""
    for value in arguments.values():
        if isinstance(value, TypedOptions):
            yield from [value] if value.kind is not None else []
        elif is_dataclass(value):
            yield from _groups({field.name: getattr(value, field.name) for field in fields(value)})


def _flat(arguments: Arguments) -> Iterable[tuple[str, object]]:
    """Every option with its value; those of a group by their own names."""
    for name, value in arguments.items():
        if is_dataclass(value):
            yield from _flat({field.name: getattr(value, field.name) for field in fields(value)})
        else:
            yield name, value


def _several(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _methods(value: object, command: str) -> None:
    from headcount.pruning.methods import METHODS

    for name in _several(value):
        plain = name.partition("+")[0] if command == "compare" else name
        if not (command == "compare" and name == "all-heads"):
            METHODS.require(plain)


def _task(name: str) -> None:
    from headcount.tasks.catalog import TASKS

    TASKS.require(name)


def _ratio(value: object) -> None:
    for ratio in _several(value):
        if ratio != FREE:
            Layout(()).kept_at(ratio)


def _require_ratio(given: Arguments) -> None:
    """The user must say how many heads to remove, where the method does not."""
    from headcount.pruning.methods import METHODS

    kind: Any = METHODS[given["method"]] if given.get("method") is not None else None
    if kind is None or not (kind.ratio == "none" or (given.get("leave") and "leave" in vars(kind))):
        choice = choose(given.get("method"), None, task=given.get("task") is not None)
        read_ratio(choice.method, given.get("ratio"))


def _bound(given: Arguments) -> None:
    """One bound that can be read, and methods that can be asked for any number of heads."""
    from headcount.studies.search.bounds import read_bound
    from headcount.studies.search.options import METHODS_TRIED, check_methods

    names = ("max_drop", "max_latency", "max_parameters", "max_cache")
    bound = read_bound(**{name: given.get(name) for name in names})
    check_methods(given.get("methods", METHODS_TRIED), bound)


def _distances(names: object) -> None:
    from headcount.likeness.options import check_names

    if names:
        check_names(_several(names))


def _preset(name: str) -> None:
    from headcount.training.options import PRESETS

    require("preset", name, PRESETS)


def _data(given: Arguments) -> None:
    """Files of data that are there, with the columns that are named."""
    names = ["rows", "pretraining_data"]
    names += ["data", "train", "dev"] if given.get("task") is not None else []
    for name in names:
        path = given.get(name)
        if isinstance(path, Path) and not path.expanduser().exists():
            kind = "file" if name in ("train", "dev", "rows") else "folder or file"
            raise NotFoundError(f"There is no {kind} '{path}'.")
    if given.get("task") in ("classification", "regression"):
        from headcount.tasks.own import check_source
        from headcount.tasks.source import Source

        names = ("data", "train", "dev", "hub", "columns", "label")
        source = {name: given[name] for name in names if given.get(name) is not None}
        check_source(Source(**source), given["task"])


def _file(value: object) -> None:
    for path in map(require_place, _several(value)):
        if path.is_dir():
            raise UsageError(f"{path} is a folder, not a file to write.")


def _out(path: Path, command: str, given: Arguments) -> None:
    overwrite = bool(given.get("overwrite"))
    require_apart(path, _inputs(given), overwrite=overwrite)
    if command in FILE:
        _file(path)
    elif command == "prune" and (path / "record.json").is_file():
        if overwrite:  # else it may be what the same command finds done; it looks there itself
            require_replaceable(path)
    elif command in NEW:
        require_new(path)
    elif path.exists() and not path.is_dir():
        raise UsageError(f"{path} is a file, not a folder.")
    elif command == "train" and (path / "config.json").exists():
        _require_trained(path)


def _inputs(given: Arguments) -> Iterable[str | Path]:
    """Files and folders that are read: models, and options that are paths."""
    for name, value in given.items():
        if name in MODELS or name == "tokenizer":
            yield from [value] if value is not None else []
        elif name not in WRITTEN:
            yield from (path for path in _several(value) if isinstance(path, Path))


def _require_trained(path: Path) -> None:
    """Refuse to train over a model that is no earlier training's."""
    if not (path / "settings.json").exists():
        raise UsageError(f"{path} is a model that headcount did not train: --out takes another.")


CHECKS: dict[str, Callable[[Any], object]] = {
    "task": _task,
    "pretraining_task": _task,
    "ratio": _ratio,
    "ratios": _ratio,
    "distances": _distances,
    "preset": _preset,
    "stack": lambda name: require("stack", name, STACKS),
    "figure": _file,
    "predictions": _file,
}
