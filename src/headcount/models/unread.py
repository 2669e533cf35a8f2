"""Attention that is seen and not understood: modules that seem to be attention and are no site.

Their heads are in no layout and no mask, so whoever reads a layout must be told of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from torch import nn

from headcount.models.sites import KEY, QUERY, Site, linear_sizes

NAMED = re.compile("attention|attn", re.IGNORECASE)
PARTS = re.compile("(MLP|Bias|Norm|Embeddings?)$")
"""Classes that are named after the attention they are a part of."""


@dataclass(frozen=True)
class UnreadAttention:
    """One module that seems to be attention: where it is, and its class."""

    path: str
    kind: str


def find_unread(model: nn.Module, sites: Iterable[Site]) -> list[UnreadAttention]:
    """The innermost modules of `model` that seem to be attention and are not among `sites`."""
    known = {path for site in sites for paths in site.places for path in paths}
    inside = {id(part) for path in known for part in model.get_submodule(path).modules()}
    seeming = {
        path: module
        for path, module in model.named_modules()
        if path and id(module) not in inside and _seems(path, module)
    }
    around = {
        path[: dot.start()] for path in (*known, *seeming) for dot in re.finditer(r"\.", path)
    }
    return [
        UnreadAttention(path, type(module).__name__)
        for path, module in seeming.items()
        if path not in around
    ]


def describe(modules: Iterable[UnreadAttention]) -> tuple[str, ...]:
    """`2 x GatedDeltaNet (layers.*.linear_attn)` for each kind and place."""
    counts: dict[tuple[str, str], int] = {}
    for item in modules:
        where = re.sub(r"(?<=\.)\d+(?=\.|$)", "*", item.path)
        counts[item.kind, where] = counts.get((item.kind, where), 0) + 1
    return tuple(f"{count} x {kind} ({where})" for (kind, where), count in counts.items())


def _seems(path: str, module: nn.Module) -> bool:
    """Whether a module's class, its name, or its projections say that it is attention."""
    if linear_sizes(module):
        return False
    children = dict(module.named_children())
    kind = type(module).__name__
    if NAMED.search(kind) and not PARTS.search(kind):
        return any(parameter.ndim > 1 for parameter in module.parameters())
    if all(any(name in children for name in names) for names in (QUERY, KEY)):
        return True
    # a norm, a table of biases or a bottleneck may be called after the attention it belongs to
    projections = sum(linear_sizes(part) is not None for part in module.modules())
    return projections > 1 and bool(NAMED.search(path.rpartition(".")[2]))
