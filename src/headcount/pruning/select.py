"""Decide which heads stay: `hc.select(model, "random", ratio=0.5)`.

decide = prepare(model, "importance", data=rows)     # measured once
decide(0.5, seed), decide(0.9, seed)                 # a mask for every ratio and seed
"""

from __future__ import annotations

import inspect
from typing import Any

from headcount.errors import UsageError, did_you_mean
from headcount.heads import Layout, Mask
from headcount.pruning.methods import METHODS, Decide


def select(
    model: Any, method: str, ratio: float | None = None, *, seed: int = 0, **options: Any
) -> Mask:
    """The heads that stay when `ratio` of them go: exactly ⌈H (1 - ratio)⌉.

    `headcount ls methods` lists the methods; `options` are the method's own. A layout does in
    place of a model where the method needs no weights.

    >>> len(select(Layout.of(encoder=[12] * 12), "random", 0.5))
    72
    """
    if ratio is not None:
        Layout(()).kept_at(ratio)  # a ratio outside is refused before anything is measured
    return prepare(model, method, **options)(ratio, seed)


def prepare(model: Any, method: str, **options: Any) -> Decide:
    """A method with what it needs, ready to decide for any ratio and seed."""
    function = METHODS[method]
    known = options_of(method)
    for name in options:
        if name not in known:
            has = f"It has: {', '.join(known)}." if known else "It has none."
            raise UsageError(
                f"The method '{method}' has no option '{name}'.{did_you_mean(name, known)} {has}"
            )
    return function(model, **options)


def options_of(method: str) -> list[str]:
    """The names of a method's own options."""
    parameters = inspect.signature(METHODS[method]).parameters.values()
    return [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]


def as_layout(model: Any) -> Layout:
    """The layout of a model; a layout itself passes."""
    if isinstance(model, Layout):
        return model
    from headcount.models.find import layout

    return layout(model)
