"""A model and the one it was pruned to: which heads were kept, and are the two comparable?"""

from __future__ import annotations

from typing import Any

from transformers import PreTrainedModel

from headcount.base.errors import UsageError
from headcount.costs.cost import cost
from headcount.heads import Head, Mask
from headcount.models.cut import sites_in
from headcount.models.find import layout_of, sites_of


def comparable(
    dense: PreTrainedModel, pruned: PreTrainedModel
) -> tuple[PreTrainedModel, PreTrainedModel]:
    """The two as they are, or without what stands on top when that is not the same."""
    if type(dense).__name__ == type(pruned).__name__:
        return dense, pruned
    left: Any = dense.base_model
    right: Any = pruned.base_model
    if type(left).__name__ != type(right).__name__:
        raise UsageError(
            f"A {type(pruned).__name__} is no pruned {type(dense).__name__}; give two models of "
            "one architecture."
        )
    return left, right


def mask_between(dense: PreTrainedModel, pruned: PreTrainedModel) -> Mask:
    """The heads of `dense` that `pruned` still has; refused when it cannot come from there."""
    before, after = _kept(dense), _kept(pruned)
    if {layer: full for layer, (full, _) in before.items()} != {
        layer: full for layer, (full, _) in after.items()
    }:
        raise UsageError(
            "The second model is not the first with heads removed: "
            f"{layout_of(sites_of(pruned))} cannot come from {layout_of(sites_of(dense))}."
        )
    kept: list[Head] = []
    for (stack, layer), (_, heads) in after.items():
        here = before[stack, layer][1]
        strange = [head for head in heads if head not in here]
        if strange:
            raise UsageError(
                f"The second model has head {stack}.{layer}.{strange[0]}, which the first has not."
            )
        kept += [Head(stack, layer, here.index(head)) for head in heads]
    mask = Mask.of(layout_of(sites_of(dense)), kept)
    _require_sizes(dense, pruned, mask)
    return mask


def _kept(model: PreTrainedModel) -> dict[tuple[str, int], tuple[int, list[int]]]:
    """For each layer its heads before any were removed, and which of them are left."""
    pruned = {(entry["stack"], entry["layer"]): entry for entry in sites_in(model.config)}
    whole = {
        (site.stack, site.layer): {"heads": site.heads, "kept": list(range(site.heads))}
        for site in sites_of(model)
    }
    return {layer: (entry["heads"], entry["kept"]) for layer, entry in (whole | pruned).items()}


def _require_sizes(dense: PreTrainedModel, pruned: PreTrainedModel, mask: Mask) -> None:
    """Equal heads do not make equal models: their widths show in the FLOPs."""
    if any("narrow" in entry for entry in sites_in(pruned.config)):
        return  # attention itself keeps its width
    expected, actual = cost(dense, length=8).flops_with(mask), cost(pruned, length=8).flops
    if None not in (expected, actual) and expected != actual:
        raise UsageError(
            "The second model is not the first with heads removed: it has as many layers and "
            "heads, but other widths."
        )
