"""Every field of some options with another value in it, one at a time."""

from __future__ import annotations

import copy
import types
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from headcount.base.options import types_of


def with_another(options: Any, way: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """(dotted place of a field, the options with another value there) for every field inside.

    What does not go together is not refused: it is only written down.
    """
    for field in fields(options):
        value, place = getattr(options, field.name), (*way, field.name)
        inside = with_another(value, place)
        if isinstance(value, tuple) and any(map(is_dataclass, value)):
            inside = _with_another_step(value, place)
        elif not is_dataclass(value):
            kind = types_of(type(options))[field.name]
            inside = [
                (".".join(place), "train" if field.name == "split" else _another(kind, value))
            ]
        for name, changed in inside:
            made = copy.copy(options)
            object.__setattr__(made, field.name, changed)
            yield name, made


def _with_another_step(
    steps: tuple[Any, ...], place: tuple[str, ...]
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    yield ".".join(place), steps[:-1]
    for at, step in enumerate(steps):
        for name, changed in with_another(step, (*place, str(at))):
            yield name, (*steps[:at], changed, *steps[at + 1 :])


def _another(kind: Any, value: Any) -> Any:
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _another(next(each for each in parts if each is not type(None)), value)
    if origin is Literal:
        return next(each for each in parts if each != value)
    if origin is tuple:
        return (*(value or ()), _another(parts[0], None))
    simple = {
        bool: lambda: not value, int: lambda: (value or 0) + 7, str: lambda: f"{value or ''}x",
        float: lambda: (value or 0.5) / 2, Path: lambda: Path("other"), Any: lambda: "other",
    }  # fmt: skip
    return simple.get(kind, kind)()
