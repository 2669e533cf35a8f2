"""Heads keep the numbers of the model that heads were first removed from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import nn

from headcount.heads import Head, Layout, Mask, Stack
from headcount.models.sites import Site, find_sites


def numbered(model: nn.Module, sites: list[Site], layout: Layout) -> Layout:
    """The layout with the numbers that a pruned model's heads had before."""
    numbers: dict[str, list[tuple[int, ...]]] = {}
    for site in sites:
        own = tuple(range(site.heads))
        kept = getattr(model.get_submodule(site.path), "kept_heads", own)
        numbers.setdefault(site.stack, []).append(tuple(kept))
    return replace(
        layout,
        stacks=tuple(
            stack
            if [len(each) for each in numbers[stack.name]] != list(stack.heads)
            or all(each == tuple(range(len(each))) for each in numbers[stack.name])
            else replace(stack, numbers=tuple(numbers[stack.name]))
            for stack in layout.stacks
        ),
    )


def original_mask(model: Any, mask: Mask) -> Mask:
    """Which heads of the original a pruned model has; `mask` is the last cut that made it.

    After one cut that is `mask` itself, after a second both cuts together.
    """
    written: Any = getattr(model.config, "headcount", None) or {"sites": []}
    cut = {entry["path"]: entry for entry in written["sites"]}
    sites = find_sites(model)
    stacks, kept = [], []
    for stack in mask.layout.stacks:
        heads, groups = [], []
        for layer, site in enumerate(site for site in sites if site.stack == stack.name):
            entry = cut.get(site.path, {"heads": site.heads, "groups": site.groups})
            heads.append(entry["heads"])
            groups.append(entry["groups"])
            left = entry.get("kept", range(site.heads))
            kept += [Head(stack.name, layer, number) for number in left]
        stacks.append(Stack(stack.name, tuple(heads), tuple(groups), stack.uses))
    return Mask.of(Layout(tuple(stacks)), kept)
