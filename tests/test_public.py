"""What `help(hc.something)` shows: real types. `Any` only where there is no type, and why."""

from __future__ import annotations

import ast
import inspect
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import pytest

import headcount as hc

PLAIN = (dict[str, Any], Mapping[str, Any], list[dict[str, Any]])
"""Plain data, as JSON has it: a value by name may be anything."""
OPEN = {
    "Cluster.redundancy": "a file, a value, or the run that makes it: runs are above methods",
    "Importance.scores": "the same",
    "Looking.inputs": "a file, or any rows that the door takes; options know no torch",
    "Meta.scorer": "a file or a scorer; options know no torch",
    "load.options": "handed on to transformers as they are",
    "select.options": "a method's own, which its class checks by name",
}
"""Public names with `Any` in their annotations, and why no type would be right."""


@cache
def names_for_checkers(module: str) -> dict[str, Any]:
    """What a module imports for type checkers only."""
    found: dict[str, Any] = {}
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for line in node.body:
                if isinstance(line, ast.ImportFrom):
                    inside = import_module(str(line.module))
                    found |= {each.asname or each.name: getattr(inside, each.name, None)
                              for each in line.names}  # fmt: skip
    return found


def annotations(thing: Any) -> dict[str, Any]:
    """Name -> type, aliases and names for checkers resolved."""
    kinds = thing.__mro__ if isinstance(thing, type) else (thing,)
    seen = [names_for_checkers(each.__module__) for each in kinds if "headcount" in each.__module__]
    return get_type_hints(thing, localns={name: one for each in seen for name, one in each.items()})


def methods(kind: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    for base in kind.__mro__:
        for name, value in vars(base).items() if base.__module__.startswith("headcount") else ():
            value = getattr(value, "fget", getattr(value, "func", value))
            value = getattr(value, "__func__", value)
            if isinstance(value, types.FunctionType) and not name.startswith("_"):
                yield name, value


def has_any(kind: Any) -> bool:
    if kind is Any:
        return True
    if kind in PLAIN:
        return False
    inside = get_args(kind)
    if get_origin(kind) is np.ndarray:  # numpy's own shape is open
        inside = inside[1:]
    return any(
        has_any(each) for part in inside for each in (part if type(part) is list else [part])
    )


def open_names(name: str, thing: Any) -> set[str]:
    """The parameters and fields of a public name whose type is not said."""
    if not isinstance(thing, type):
        return {f"{name}.{at}" for at, kind in annotations(thing).items() if has_any(kind)}
    own = {each.name for each in fields(thing)} if is_dataclass(thing) else set[str]()
    found = {f"{name}.{at}" for at in own if has_any(annotations(thing)[at])}
    for method, function in methods(thing):
        found |= open_names(f"{name}.{method}", function)
    return found


PUBLIC = sorted(set(hc.__all__) - {"__version__"})


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_have_types(name):
    known = {each for each in OPEN if each.split(".")[0] == name}
    assert open_names(name, getattr(hc, name)) == known


def test_the_rule_sees_what_it_should():
    def bare(a: Any, b: list[Any], c: Callable[[int], Any], d: dict[str, Any], e: int) -> None: ...

    assert open_names("f", bare) == {"f.a", "f.b", "f.c"}


def test_help_shows_the_signature():
    shown = str(inspect.signature(hc.redundancy))
    assert shown.startswith("(model: 'nn.Module', inputs: 'Data', distances: 'str | Iterable[str]'")
