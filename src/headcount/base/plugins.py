"""Scripts that add methods, repairs, tasks or distances: `--plugin longest.py` of every command.

A script is executed once in a process, before options are read, and calls `METHODS.add(…)` and the
like. The jobs of a study name it, so that workers on this or another machine execute it as well.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import CodeType, FunctionType

from headcount.base.digest import digest
from headcount.base.errors import HeadcountError, NotFoundError, UsageError, in_words
from headcount.base.registry import Registry

_scripts: dict[str, None] = {}
"""Scripts that this process has executed, in their order."""


def load_plugin(path: str | Path) -> None:
    """Execute a script that registers something; one that was executed is not again."""
    file = Path(path).expanduser().absolute()
    if str(file) in _scripts:
        return
    if not file.is_file():
        raise NotFoundError(f"There is no plugin '{path}': --plugin takes a Python file.")
    stem = re.sub(r"\W", "_", file.stem)
    name = f"headcount_plugin_{stem}_{digest(str(file), size=4)}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is no Python file, so it is no plugin.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses look for the types of their fields
    try:
        spec.loader.exec_module(module)
    except HeadcountError as error:
        sys.modules.pop(name)
        raise UsageError(f"The plugin {path} cannot be used: {error}") from error
    except Exception as error:
        sys.modules.pop(name)
        raise UsageError(f"The plugin {path} cannot be used: {in_words(error)}.") from error
    _scripts[str(file)] = None


def loaded_plugins() -> tuple[str, ...]:
    """The scripts that were executed, for those who start other processes."""
    return tuple(_scripts)


def code_digest(target: Callable[..., object]) -> str:
    """A short name for the code of a class or function: the file it is in, or its bytecode."""
    try:
        code = Path(inspect.getfile(target)).read_bytes()
    except (OSError, TypeError):  # typed at a prompt or in a notebook
        functions = vars(target).values() if inspect.isclass(target) else [target]
        code = "".join(map(bytecode, filter(inspect.isfunction, functions))).encode()
    return digest(code)


def bytecode(function: FunctionType) -> str:
    """What a function does, where its source is not kept; the same in every process."""
    code = function.__code__
    inside = [value for value in code.co_consts if not isinstance(value, CodeType)]
    nested = [value.co_code for value in code.co_consts if isinstance(value, CodeType)]
    return repr((code.co_code, code.co_names, inside, nested))


def plugin_code(plain: object, registries: Iterable[Registry]) -> dict[str, str]:
    """The code behind names in plain data that is not headcount's own: name -> digest.

    A result depends on it, so that it is another one when a plugin was edited.
    """
    names = set(_texts(plain))
    code: dict[str, str] = {}
    for registry in registries:
        for entry in registry:
            module = entry.target if isinstance(entry.target, str) else entry.target.__module__
            if entry.name in names and not module.startswith("headcount."):
                code[f"{registry.kind}.{entry.name}.code"] = code_digest(registry[entry.name])
    return code


def _texts(plain: object) -> Iterator[str]:
    if isinstance(plain, str):
        yield plain
    elif isinstance(plain, Mapping):
        for value in plain.values():
            yield from _texts(value)
    elif isinstance(plain, list | tuple):
        for value in plain:
            yield from _texts(value)
