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
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import pytest

import headcount as hc

PLAIN = (dict[str, Any], Mapping[str, Any], list[dict[str, Any]])
"""Plain data, as JSON has it: a value by name may be anything."""
OPEN = {
    "Cluster.redundancy": "a file, a value, or the run that makes it: runs are above methods",
    "Importance.scores": "the same",
    "Calibration.rows": "a file, or any rows that as_rows takes; options know no torch",
    "Meta.scorer": "a file or a scorer; options know no torch",
    "load.options": "handed on to transformers as they are",
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


NO_MODEL = {"number": 5, "nothing": None, "mapping": {"model": 1}}
TASK = "pocket-sentiment"


def gated(model: Any) -> None:
    with hc.gate(model, {0: [1]}):
        pass


TAKES_MODEL: dict[str, Callable[[Any], Any]] = {
    "attention": lambda model: hc.attention(model, "a text"),
    "bench": lambda model: hc.bench(model),
    "compare": lambda model: hc.compare(model, TASK),
    "curve": lambda model: hc.curve(model, TASK),
    "evaluate": lambda model: hc.evaluate(model, TASK),
    "export": lambda model: hc.export(model, "zeroed", "unused"),
    "gate": gated,
    "importance": lambda model: hc.importance(model, TASK),
    "inspect": lambda model: hc.inspect(model),
    "layout": lambda model: hc.layout(model),
    "prune": lambda model: hc.prune(model, ratio=0.5),
    "recover": lambda model: hc.recover(model, model, ["a text"]),
    "redundancy": lambda model: hc.redundancy(model, ["a text"]),
    "remove": lambda model: hc.remove(model, {0: [1]}),
    "roles": lambda model: hc.roles(model),
    "search": lambda model: hc.search(model, TASK, max_drop=0.01),
    "select": lambda model: hc.select(model, "random", 0.5),
    "sweep": lambda model: hc.sweep(model, TASK, "mu", [0.1]),
    "train": lambda model: hc.train(model, TASK),
    "transfer": lambda model: hc.transfer(model, model, ["a text"]),
}
"""Every public function that takes a model, called with everything else right."""


@pytest.mark.parametrize("given", NO_MODEL)
@pytest.mark.parametrize("name", TAKES_MODEL)
def test_what_is_no_model_is_refused_in_a_sentence(name: str, given: str) -> None:
    with pytest.raises(hc.HeadcountError, match="model"):
        TAKES_MODEL[name](NO_MODEL[given])


@pytest.mark.parametrize("name", TAKES_MODEL)
@pytest.mark.parametrize("kind", [str, Path])
def test_a_name_that_leads_nowhere_is_refused_in_a_sentence(name: str, kind: type) -> None:
    with pytest.raises(
        hc.HeadcountError, match=r"[Nn]o model|not a name|no model folder|not Posix"
    ):
        TAKES_MODEL[name](kind("./none"))


@pytest.mark.parametrize("name", ["evaluate", "compare", "curve", "search", "sweep", "train"])
def test_a_model_without_the_tasks_head_is_refused_as_in_the_shell(name: str) -> None:
    with pytest.raises(hc.HeadcountError, match="no head for classification, which pocket-sent"):
        TAKES_MODEL[name](hc.load("pocket"))


@pytest.mark.parametrize("name", ["evaluate", "compare", "curve", "search", "sweep", "importance"])
def test_a_name_without_the_tasks_head_is_refused_as_in_the_shell(name: str) -> None:
    with pytest.raises(hc.HeadcountError, match=r"was saved as .* without a head for classificat"):
        TAKES_MODEL[name]("pocket")


def test_other_things_that_are_no_tasks_files_or_runs() -> None:
    for call, says in [
        (lambda: hc.curve("pocket", 5), "A task is"),  # pyright: ignore[reportArgumentType]
        (lambda: hc.train("pocket", 5), "A task is"),  # pyright: ignore[reportArgumentType]
        (lambda: hc.run("pocket"), "hc.run takes a hc.Run"),  # pyright: ignore[reportArgumentType]
        (lambda: hc.study(5), "study"),  # pyright: ignore[reportArgumentType]
        (lambda: hc.report(5), "file"),  # pyright: ignore[reportArgumentType]
        (lambda: hc.load(5), "model"),  # pyright: ignore[reportArgumentType]
        (lambda: hc.load(None), "model"),  # pyright: ignore[reportArgumentType]
        (lambda: hc.load_record(5), "record"),  # pyright: ignore[reportArgumentType]
        (lambda: hc.load_roles(5), "roles"),  # pyright: ignore[reportArgumentType]
        (lambda: hc.load_redundancy(None), "redundancy"),  # pyright: ignore[reportArgumentType]
        (lambda: hc.difference(0.5, 0.4), "what hc.evaluate gives"),  # pyright: ignore[reportArgumentType]
    ]:
        with pytest.raises(hc.HeadcountError, match=says):
            call()


def test_a_name_works_where_a_task_says_which_head(tmp_path: Path) -> None:
    options = hc.TrainOptions(steps=1, batch_size=4)
    trained = hc.train("pocket", TASK, options=options, limit=8, evaluation=False, out=tmp_path)
    assert trained.steps == 1
    few = hc.Scoring(limit=20, bootstrap=0)
    found = hc.evaluate(str(tmp_path), TASK, scoring=few)
    assert hc.evaluate(tmp_path, TASK, scoring=few).scores == found.scores
    by_layer = hc.evaluate(tmp_path, TASK, {0: [1, 2]}, scoring=few)
    assert by_layer.mask is not None
    assert by_layer.mask.counts() == {"encoder": (6, 8, 8, 8, 8, 8)}
    several = hc.evaluate(trained.model, TASK, ["888888", {0: [1, 2]}], scoring=few)
    assert [each.score for each in several] == [found.score, by_layer.score]
