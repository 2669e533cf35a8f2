"""A group of runs of a study file: axes × axes, what is set where, what is left out.

axes = axes_of(group)                     # {"seed": [0, 1], "options.ratio": [0.25, 0.5]}
for cell in cells(group): ...             # {"seed": 0, "options.ratio": 0.25}, ...
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from headcount.base.errors import UsageError
from headcount.base.options import Mistakes, OptionsError
from headcount.base.text import short

SHORT: dict[str, str] = {
    "models": "model",
    "tasks": "task",
    "methods": "options.method",
    "ratios": "options.ratio",
    "seeds": "seed",
}
"""Axes with a name of their own in a group, and where their values go."""
MOST = 10_000_000
"""Seeds of a group."""
Group = Mapping[str, Any]
"""What a study file says of a group of runs, or of one place in it: names with values."""
Values = dict[str, Any]
"""Axis (a dotted place in a run) -> its value."""
Axes = dict[str, list[Any]]
"""Axis -> its values."""
Row = TypeVar("Row")
Key = tuple[Hashable, ...]
Indexed = dict[Key, list[Row]]
"""Values on some axes -> what has them."""


def axes_of(group: Group, mistakes: Mistakes | None = None) -> Axes:
    """The axes of a group in the order in which they are written; the first one varies slowest.

    With `mistakes` those that are wrong are put down there and left out.
    """
    mistakes_here, axes = mistakes or Mistakes(), Axes()
    for name, values in group.items():
        if name in SHORT:
            with mistakes_here.at(name):
                axes[SHORT[name]] = values_of(name, values)
        elif name == "grid" and isinstance(values, Mapping):
            for path, part in values.items():
                with mistakes_here.at(name, str(path)):
                    axes[SHORT.get(str(path), str(path))] = values_of(str(path), part)
        elif name == "grid":
            with mistakes_here.at(name):
                raise UsageError("a grid has places with lists of values.")
    if mistakes is None:
        mistakes_here.refuse()
    return axes


def written_at(path: Sequence[str], group: Group, cell: Values) -> tuple[str, ...]:
    """Where a group says the value that a run has at this place: on an axis, or right there.

    >>> written_at(("options", "ratio"), {"ratios": [0.5, 1.5]}, {"options.ratio": 1.5})
    ('ratios', '1')
    """
    dotted, grid = ".".join(path), group.get("grid")
    inside = grid.items() if isinstance(grid, Mapping) else ()
    for axis, value in cell.items():
        if not any(f"{dotted}.".startswith(f"{part.strip()}.") for part in axis.split(",")):
            continue
        for name, values in [*group.items(), *inside]:
            if SHORT.get(name, name) == axis:
                way = (name,) if name in group else ("grid", name)
                listed = isinstance(values, list) and value in values
                return (*way, str(values.index(value))) if listed else way
    return tuple(path)


def values_of(name: str, values: object) -> list[Any]:
    """The values of an axis; a number of seeds is so many of them, from 0."""
    if name in ("seeds", "seed") and isinstance(values, int) and not isinstance(values, bool):
        if values > MOST:
            raise UsageError(f"{name} has at most {MOST:,} values, not {short(values)}.")
        values = list(range(values))
    if not isinstance(values, list):
        values = [values]
    if not values:
        raise UsageError(f"{name} has no values.")
    seen = set[object]()
    for value in values:
        if (known := frozen(value)) in seen:
            raise UsageError(f"{name} has {value!r} twice.")
        seen.add(known)
    return values


def frozen(value: object) -> Hashable:
    """A value that can be looked up: equal for equal values, and only for those.

    >>> frozen({"a": [1]}) == frozen({"a": [1.0]}), frozen([1]) == frozen([2])
    (True, False)
    """
    if isinstance(value, Mapping):
        return frozenset((name, frozen(item)) for name, item in value.items())
    return tuple(map(frozen, value)) if isinstance(value, list) else value


def by_values(
    rows: Iterable[Row], axes: Sequence[str], cell: Callable[[Row], Values]
) -> Indexed[Row]:
    """Rows by the values that the `cell` of each has on these axes, in their order."""
    indexed: Indexed[Row] = {}
    for row in rows:
        indexed.setdefault(values_at(cell(row), axes), []).append(row)
    return indexed


def values_at(cell: Values, axes: Sequence[str]) -> Key:
    """What a combination has on these axes, to look up by."""
    return tuple(frozen(cell[axis]) for axis in axes)


def cells(axes: Axes) -> Iterator[Values]:
    """Every combination of values."""
    for values in itertools.product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def label(axis: str) -> str:
    """What a table calls an axis: its last word, or those of the places that it sets together.

    >>> label("options.training.seed"), label("options.a.x, options.b.y")
    ('seed', 'x,y')
    """
    return ",".join(path.strip().rpartition(".")[2] for path in axis.split(","))


def matches(cell: Values, when: Group) -> bool:
    """Whether a combination is one that is meant: each place has the value, or one of the values.

    >>> matches({"options.ratio": 0.5, "seed": 1}, {"ratio": [0.5, 0.9]})
    True
    >>> matches({"options.method": {"name": "random"}}, {"method": "surgeon"})
    False
    """
    return all(_is(cell, path, wanted) for path, wanted in when.items())


def _is(cell: Values, path: str, wanted: object) -> bool:
    axis = axis_named(path, cell)
    value = cell[axis] if axis is not None else None
    several = wanted if isinstance(wanted, list) else [wanted]
    return value in several or named(value) in several


def axis_named(path: str, axes: Iterable[str]) -> str | None:
    """The axis that is meant by a place, which may be its last word or its short name."""
    for axis in axes:
        if path in (axis, label(axis)) or SHORT.get(path) == axis:
            return axis
    return None


def named(value: Any) -> Any:
    """A value as a table and a condition name it: a method by its name, a run by its group.

    >>> named({"name": "importance", "step": 0.05}), named({"run": "base"}), named(0.5)
    ('importance', 'base', 0.5)
    """
    if isinstance(value, Mapping):
        for word in ("name", "run", "best", "kind"):
            if isinstance(value.get(word), str):
                return value[word]
    return value


def put(data: Values, path: str, value: object) -> None:
    """Set a value at a dotted place, or at several with commas, making the objects on the way."""
    for part in path.split(",")[1:]:
        put(data, part.strip(), value)
    *way, last = path.partition(",")[0].strip().split(".")
    for at, name in enumerate(way):
        inner = data.get(name)
        if isinstance(inner, str) and name == "method":
            inner = {"name": inner}
        if not isinstance(inner, Mapping | None):
            text = f"{name} has names with values, not {short(inner)}."
            raise OptionsError(text, [(tuple(way[: at + 1]), text)])
        data[name] = dict(inner or {})
        data = data[name]
    data[last] = value


def merged(first: Any, second: Any) -> Any:
    """Two nests as one; where both have a value, that of the second."""
    if not isinstance(first, Mapping) or not isinstance(second, Mapping):
        return second
    return {**first, **{name: merged(first.get(name), item) for name, item in second.items()}}
