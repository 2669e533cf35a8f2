"""Heads keep the numbers of the model that heads were first removed from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from headcount.base.errors import UsageError
from headcount.base.files import parse_json
from headcount.heads import Head, Layout, Mask, Stack
from headcount.heads.as_mask import MaskLike, as_mask, mask_text
from headcount.models.cut import settings_of, sites_in
from headcount.models.sites import Site, find_sites


def numbered(model: nn.Module, sites: list[Site], layout: Layout) -> Layout:
    """The layout with the numbers that a pruned model's heads had before."""
    numbers: dict[str, list[tuple[int, ...]]] = {}
    for site in sites:
        unpruned = tuple(range(site.heads))
        kept = getattr(model.get_submodule(site.path), "kept_heads", unpruned)
        numbers.setdefault(site.stack, []).append(tuple(kept))
    return replace(
        layout,
        stacks=tuple(
            stack
            if [len(layer) for layer in numbers[stack.name]] != list(stack.heads)
            or all(layer == tuple(range(len(layer))) for layer in numbers[stack.name])
            else replace(stack, numbers=tuple(numbers[stack.name]))
            for stack in layout.stacks
        ),
    )


def left_of(config: object, sites: list[Site]) -> Mask | None:
    """The heads that a saved model still has, of those it had at first; None where all are left."""
    pruned = {(entry["stack"], entry["layer"]): entry for entry in sites_in(config)}
    if not pruned:
        return None
    counts: dict[str, list[int]] = {}
    kept: list[Head] = []
    for site in sites:
        whole = {"heads": site.heads, "kept": range(site.heads)}
        entry = pruned.get((site.stack, site.layer), whole)
        counts.setdefault(site.stack, []).append(entry["heads"])
        kept += [Head(site.stack, site.layer, index) for index in entry["kept"]]
    return Mask.of(Layout.of(**counts), kept)


def original_mask(model: Any, mask: Mask) -> Mask:
    """Which heads of the original a pruned model has; `mask` is the last cut that made it.

    After one cut that is `mask` itself, after a second both cuts together.
    """
    pruned = {entry["path"]: entry for entry in sites_in(settings_of(model))}
    sites = find_sites(model)
    stacks, kept = [], []
    for stack in mask.layout.stacks:
        heads, groups = [], []
        for layer, site in enumerate(site for site in sites if site.stack == stack.name):
            entry = pruned.get(site.path, {"heads": site.heads, "groups": site.groups})
            heads.append(entry["heads"])
            groups.append(entry["groups"])
            left = entry.get("kept", range(site.heads))
            kept += [Head(stack.name, layer, number) for number in left]
        stacks.append(Stack(stack.name, tuple(heads), tuple(groups), stack.uses))
    return Mask.of(Layout(tuple(stacks)), kept)


def read_mask(given: MaskLike | Tensor, model: object, layout: Layout) -> Mask:
    """The mask of a model of this layout; `model` may be the layout itself.

    JSON for a pruned model may also be a mask of the original, such as the mask.json of a later
    cut: its heads are found by the numbers they had there.
    """
    pruned = getattr(settings_of(model), "headcount", None)
    if not isinstance(given, str | Path):
        return as_mask(given, layout)
    text = mask_text(given)
    if not pruned or not text.lstrip().startswith("{"):
        return Mask.parse(text, layout)
    mask = Mask.from_json(parse_json(text, "This mask is not JSON"))
    left = original_mask(model, Mask.full(layout))
    if mask.layout == layout or mask.layout != left.layout:
        return Mask.parse(text, layout)
    gone = sorted(str(head) for head in mask if head not in left)
    if gone:
        more = f" and {len(gone) - 3} more" if len(gone) > 3 else ""
        raise UsageError(
            f"The mask keeps {', '.join(gone[:3])}{more}, which were removed from this model "
            "before: take a mask of heads that it has, or cut the model that still has all of them."
        )
    return Mask.of(layout, [head for head in layout if layout.original(head) in mask])
