"""What was found out about a model, kept for as long as the model stays as it is.

Heads are looked up by everything that touches them; the model is walked and tried out once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from torch import nn

Found = TypeVar("Found")
_KEPT: WeakKeyDictionary[nn.Module, tuple[Any, dict[Hashable, Any]]] = WeakKeyDictionary()


def remembered(model: nn.Module, what: Hashable, find: Callable[[], Found]) -> Found:
    """What `find` gives for this model; asked again only when modules or weights were exchanged."""
    now = _state(model)
    then, values = _KEPT.get(model, (None, {}))
    if then != now:
        values = {}
        _KEPT[model] = now, values
    if what not in values:
        values[what] = find()
    return values[what]


def known_of(model: nn.Module, other: nn.Module, *what: Hashable) -> None:
    """Take over what is known of another model that is built alike, as a copy is."""
    values = _KEPT.get(other, (None, {}))[1]
    for name in what:
        if name in values:
            remembered(model, name, lambda name=name: values[name])


def _state(model: nn.Module) -> object:
    """Which modules and weights a model is made of, and where they are; not what they hold."""
    modules = list(model.modules())
    weights = tuple(
        (id(weight), weight.shape, weight.dtype, weight.device)
        for module in modules
        for weight in module._parameters.values()
        if weight is not None
    )
    config = getattr(model, "config", None)
    forward = id(vars(model).get("forward"))  # one that somebody has put there
    parts = tuple(map(id, modules))
    return type(model), forward, parts, weights, id(config), id(getattr(config, "headcount", None))
