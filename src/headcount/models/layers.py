"""A model's layers in the order they run, found by structure: the chain behind freezing and replay.

A layer is the outermost member of a ModuleList that holds attention sites.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import nn

from headcount.models.find import sites_of, unwrap
from headcount.models.hooks import evaluating, hooked
from headcount.models.probe import find_probe
from headcount.models.sites import Site


@dataclass(frozen=True)
class Layer:
    """One layer's module and the attention sites in it."""

    path: str
    sites: tuple[Site, ...]

    @property
    def stack(self) -> str:
        """The path of the list of layers this one is in."""
        return self.path.rpartition(".")[0]


def find_layers(model: nn.Module) -> list[Layer]:
    """Every layer with attention heads, in module order; empty when they are in no list."""
    model = unwrap(model)
    members: dict[str, list[Site]] = {}
    for site in sites_of(model):
        block = block_of(model, site.path)
        if block is None:
            return []
        members.setdefault(f"{block[0]}.{block[1]}", []).append(site)
    order = {path: number for number, (path, _) in enumerate(model.named_modules())}
    return [Layer(path, tuple(members[path])) for path in sorted(members, key=order.__getitem__)]


def block_of(model: nn.Module, path: str) -> tuple[str, int] | None:
    """(path of the outermost list of blocks, place in it) for a module; None where there is none.

    >>> block_of(nn.Sequential(nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1)])), "0.1")
    ('0', 1)
    """
    parts = path.split(".")
    for end in range(1, len(parts)):
        if isinstance(model.get_submodule(".".join(parts[:end])), nn.ModuleList):
            return ".".join(parts[:end]), int(parts[end])
    return None


def call_order(
    model: nn.Module, layers: list[Layer], inputs: Mapping[str, object] | None = None
) -> list[str]:
    """Paths of the layers in the order one forward pass calls them, shared ones repeatedly."""
    model = unwrap(model)
    calls: list[str] = []
    hooks = [
        lambda layer=layer: model.get_submodule(layer.path).register_forward_pre_hook(
            lambda *_: calls.append(layer.path)
        )
        for layer in layers
    ]
    inputs = inputs if inputs is not None else find_probe(model)
    with hooked(hooks), torch.no_grad(), evaluating(model):
        model(**inputs)
    return calls
