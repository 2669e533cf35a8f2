"""Results with the keys that a test is about, and every other key with a neutral value.

whole(PruneResult, {"heads": {"before": 12, "after": 6}})      # JSON of a whole result
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from headcount.base.json_object import JsonObject, key_of
from headcount.base.options import needed_of, types_of
from headcount.heads import Layout, Mask
from headcount.runs.kinds import KINDS

Kind = TypeVar("Kind", bound=JsonObject)
NEUTRAL: dict[Any, Any] = {str: "", int: 0, float: 0.0, bool: False, Layout: {}}


def whole(kind: type[JsonObject], data: Mapping[str, Any]) -> dict[str, Any]:
    """The data with what it lacks."""
    types_ = {key_of(name): wanted for name, wanted in types_of(kind).items()}
    lacking = {key_of(name): None for name in needed_of(kind) if key_of(name) not in data}
    return {
        name: _filled(types_[name], value) if name in types_ else value
        for name, value in {**data, **{name: _neutral(types_[name]) for name in lacking}}.items()
    }


def whole_record(kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """The data of a record of this kind with what its result lacks."""
    run_kind: Any = KINDS[kind]
    return whole(run_kind.result, data)


def _neutral(wanted: Any) -> Any:
    if get_origin(wanted) in (Union, types.UnionType):
        return None if type(None) in get_args(wanted) else _neutral(get_args(wanted)[0])
    if get_origin(wanted) is Literal:
        return get_args(wanted)[0]
    if wanted is Mask:
        return {"layout": {}, "kept": {}}
    if wanted in NEUTRAL:
        return NEUTRAL[wanted]
    if isinstance(wanted, type) and issubclass(wanted, JsonObject):
        return whole(wanted, {})
    return [] if get_origin(wanted) is tuple else {}


def _filled(wanted: Any, value: Any) -> Any:
    """What is inside of a value filled, too."""
    if get_origin(wanted) in (Union, types.UnionType):
        inside = [kind for kind in get_args(wanted) if kind is not type(None)]
        return value if value is None else _filled(inside[0], value)
    if isinstance(wanted, type) and issubclass(wanted, JsonObject) and isinstance(value, Mapping):
        return whole(wanted, value)
    if get_origin(wanted) is tuple and isinstance(value, list) and get_args(wanted)[-1] is ...:
        return [_filled(get_args(wanted)[0], item) for item in value]
    if isinstance(value, Mapping) and len(get_args(wanted)) == 2:
        return {name: _filled(get_args(wanted)[1], item) for name, item in value.items()}
    return value


def result(kind: type[Kind], data: Mapping[str, Any]) -> Kind:
    """The same as a value."""
    return kind.from_json(whole(kind, data))
