"""Options: frozen dataclasses that stand beside what they configure, and their one plain form.

The same value is what a library function takes, what the command line makes, what a record keeps
and what a config or study file holds:

    to_plain(TrainOptions(epochs=1))                 # {"epochs": 1.0, "steps": None, ...}
    read(TrainOptions, {"epochs": 1}, "record.json") # the value; all mistakes are told at once

A field's docstring, the string below it, is its help on the command line and in the docs. A class
that is `checked` refuses texts for numbers when it is made in Python.
"""

from __future__ import annotations

import ast
import inspect
import math
import textwrap
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypeVar, Union, get_args, get_origin
from typing import get_type_hints as hints

from headcount.base.errors import HeadcountError, UsageError
from headcount.base.names import did_you_mean


class Options(Protocol):
    """Any dataclass of options."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


Kind = TypeVar("Kind", bound=Options)
Checked = TypeVar("Checked")
TYPE_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


PLAIN = {type(None), bool, int, float, str}


def to_plain(value: object) -> Any:
    """A value as JSON and TOML can hold it: options by field, paths as text, tuples as lists."""
    if type(value) in PLAIN:
        return value
    if is_dataclass(value) and not isinstance(value, type):
        if hasattr(value, "to_plain"):
            return value.to_plain()  # pyright: ignore[reportAttributeAccessIssue]
        return by_field(value)
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, str) or not isinstance(value, Sequence):
        return value
    return [to_plain(item) for item in value]


def defined(value: object) -> Any:
    """A nest of values with None for what is no finite number: JSON has no word for that.

    >>> defined({"score": float("nan"), "ends": [0.5, float("inf")]})
    {'score': None, 'ends': [0.5, None]}
    """
    if isinstance(value, dict):
        return {name: defined(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [defined(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def by_field(value: Any) -> dict[str, Any]:
    """Options by field, for a class that has its own `to_plain`, too."""
    wanted = types_of(type(value))
    return {
        field.name: _as_written(to_plain(getattr(value, field.name)), wanted.get(field.name))
        for field in fields(value)
    }


def _as_written(value: object, wanted: object) -> object:
    """A number as it is read back: 1 for a share of 1 is 1.0."""
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    kinds = get_args(wanted) if get_origin(wanted) in (Union, types.UnionType) else (wanted,)
    return float(value) if float in kinds and int not in kinds else value


def changed(value: Any) -> dict[str, Any]:
    """The options of a value that are not their defaults, or have none."""
    values = {}
    for field in fields(value):
        usual = default_of(field)
        now = getattr(value, field.name)
        if usual is MISSING or (now is not usual and now != usual):
            values[field.name] = now
    return values


def default_of(field: Field[Any]) -> Any:
    """The default of a field; MISSING without one."""
    if field.default is MISSING and field.default_factory is not MISSING:
        return field.default_factory()
    return field.default


class OptionsError(UsageError):
    """Wrong options: every mistake, with the way to it from where the reading began."""

    def __init__(self, text: str, mistakes: Sequence[tuple[tuple[str, ...], str]]) -> None:
        super().__init__(text)
        self.mistakes = list(mistakes)


class Mistakes:
    """The mistakes of several parts of one thing, told at once."""

    def __init__(self) -> None:
        self.errors: list[HeadcountError] = []
        self.mistakes: list[tuple[tuple[str, ...], str]] = []

    def at(self, *path: str) -> _Part:
        """Put down what is refused inside, as a mistake of the part at `path`, and go on."""
        return _Part(self, path)

    def refuse(self) -> None:
        """Tell the mistakes, if there are any: a single one as it was refused."""
        if len(self.errors) == 1:
            self.errors[0].mistakes = self.mistakes
            raise self.errors[0]
        if self.errors:
            raise OptionsError(" ".join(map(str, self.errors)), self.mistakes)


class _Part:
    """A part whose refusal is put down; a study has many, and a generator would cost more."""

    __slots__ = ("mistakes", "path")

    def __init__(self, mistakes: Mistakes, path: tuple[str, ...]) -> None:
        self.mistakes, self.path = mistakes, path

    def __enter__(self) -> None:
        """Nothing is opened."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        """Put a refusal down; anything else goes on its way."""
        if not isinstance(error, HeadcountError):
            return False
        self.mistakes.errors.append(error)
        inside = error.mistakes or [((), str(error))]
        self.mistakes.mistakes += [((*self.path, *path), text) for path, text in inside]
        return True


def read(kind: type[Kind], data: object, where: str) -> Kind:
    """The options in plain `data`; every unknown name and wrong value is told at once."""
    if not isinstance(data, Mapping):
        raise UsageError(f"{where} is a {type(data).__name__}, not options by name.")
    known = types_of(kind)
    messages: list[str] = []
    mistakes: list[tuple[tuple[str, ...], str]] = []
    values: dict[str, object] = {}
    for name, value in data.items():
        key = str(name).replace("-", "_")
        if key not in known:
            messages.append(f"there is no option '{name}'.{did_you_mean(key, known)}")
            mistakes.append(((str(name),), messages[-1]))
            continue
        try:
            values[key] = convert(value, known[key], f"{where}.{key}")
        except UsageError as error:
            messages.append(f"{key}: {error}")
            inside = error.mistakes or [((), str(error))]
            mistakes += [((str(name), *path), text) for path, text in inside]
    if mistakes:
        raise OptionsError(f"In {where}: {' '.join(messages)}", mistakes)
    if missing := [name for name in needed_of(kind) if name not in values]:
        text = f"{', '.join(missing)} must be said."
        raise OptionsError(f"In {where}: {text}", [((), text)])
    return kind(**values)


def checked(kind: type[Checked]) -> type[Checked]:
    """Let a class of options refuse texts for numbers; goes below `@dataclass`.

    `Scoring(limit="50")` would otherwise fail far from where it was written, or not at all. The
    types are checked before the class's own `__post_init__` looks at the values.
    """
    post_init = getattr(kind, "__post_init__", None)

    def check(options: object) -> None:
        for name, wanted in types_of(type(options)).items():
            value = getattr(options, name)
            if isinstance(value, str) and (number := _number_type(wanted)):
                raise UsageError(
                    f"{type(options).__name__}.{name} is {TYPE_NAMES[number]}, not the text "
                    f"{value!r:.60}."
                )
        if post_init is not None:
            post_init(options)

    kind.__post_init__ = check  # pyright: ignore[reportAttributeAccessIssue]
    return kind


@cache
def _number_type(wanted: Any) -> type | None:
    """The number that a field takes; None where it may be a text."""
    union = get_origin(wanted) in (Union, types.UnionType)
    kinds = [kind for kind in (get_args(wanted) if union else (wanted,)) if kind is not type(None)]
    return kinds[-1] if kinds and all(kind in (bool, int, float) for kind in kinds) else None


def needed_of(kind: type[Options]) -> list[str]:
    """The options that have no default."""
    return [
        field.name
        for field in fields(kind)
        if field.init and field.default is MISSING and field.default_factory is MISSING
    ]


def convert(value: object, wanted: object, where: str) -> Any:
    """`value` as the type `wanted`, or a refusal: 1.5 is no whole number, "yes" no boolean."""
    origin = get_origin(wanted)
    if wanted is Any or getattr(wanted, "_is_protocol", False):
        return value  # whoever reads it knows what it is
    if origin in (Union, types.UnionType):
        return _one_of(value, get_args(wanted), where)
    if origin is Literal:
        if value not in get_args(wanted):
            known = ", ".join(map(str, get_args(wanted)))
            raise UsageError(f"'{value}' is none of {known}.")
        return value
    if is_dataclass(wanted):
        kind: Any = wanted
        if isinstance(value, kind):
            return value
        if hasattr(kind, "from_json"):
            return kind.from_json(value)
        return kind.read(value, where) if hasattr(kind, "read") else read(kind, value, where)
    if origin in (tuple, list):
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise UsageError(f"{value!r} is not a list.")
        items = get_args(wanted)
        kinds = items if items[-1:] != (...,) and origin is tuple else items[:1] * len(value)
        if len(kinds) != len(value):
            raise UsageError(f"{value!r} has not {len(kinds)} parts.")
        return origin(convert(part, one, where) for part, one in zip(value, kinds, strict=True))
    if origin in (dict, Mapping):
        if not isinstance(value, Mapping):
            raise UsageError(f"{value!r:.60} is no object.")
        return {str(key): convert(item, get_args(wanted)[1], where) for key, item in value.items()}
    return _simple(value, wanted)


def _one_of(value: object, kinds: Sequence[object], where: str) -> Any:
    if value is None and type(None) in kinds:
        return None
    problem: UsageError | None = None
    for kind in kinds:
        if kind is not type(None):
            try:
                return convert(value, kind, where)
            except UsageError as error:
                problem = problem or error
    raise problem or UsageError(f"{value!r} cannot be used here.")


def _simple(value: Any, wanted: Any) -> Any:
    if wanted is Path and isinstance(value, str | Path):
        return Path(value)
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError as error:
            raise UsageError(f"{value!r:.20}… is too large.") from error
    exact = isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))
    if not exact:
        raise UsageError(f"{value!r} is not {TYPE_NAMES.get(wanted, wanted.__name__)}.")
    return value


@cache
def types_of(kind: type[Options]) -> dict[str, Any]:
    """Field -> its type."""
    types = hints(kind)
    return {field.name: types[field.name] for field in fields(kind) if field.init}


def docs_of(kind: type) -> dict[str, str]:
    """Field -> the docstring below it, of the class and those it comes from."""
    docs: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if not is_dataclass(base):
            continue
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(base)))
        except (OSError, TypeError, SyntaxError):
            continue  # a class made at run time has no source
        body = tree.body[0].body  # pyright: ignore[reportAttributeAccessIssue]
        for field, text in pairwise(body):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                help_text = text.value if isinstance(text, ast.Expr) else None
                if isinstance(help_text, ast.Constant) and isinstance(help_text.value, str):
                    docs[field.target.id] = " ".join(help_text.value.split())
    return docs
