"""Take heads out of a model for good, and prove that the rest answers as if they were masked."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from torch import Tensor, nn
from transformers import PreTrainedModel

from headcount.base.errors import HeadcountError, UnsupportedError, UsageError, in_words
from headcount.heads import Mask
from headcount.heads.as_mask import MaskLike
from headcount.models import cut
from headcount.models.door import require_numbers, require_pretrained
from headcount.models.find import mask_for, sites_of, unwrap
from headcount.models.instructions import CutWay, emptied_kinds, instructions
from headcount.models.memory import known_of, remembered
from headcount.models.probe import find_probe, require_finite
from headcount.models.pruned import pruned_class
from headcount.models.seen import require_seen
from headcount.models.sites import Site
from headcount.models.verify import RoundingTest

Part = TypeVar("Part", bound=nn.Module)


def remove(
    model: PreTrainedModel,
    mask: MaskLike | Tensor,
    *,
    probe: Mapping[str, Tensor] | None = None,
) -> PreTrainedModel:
    """A copy of `model` with only the mask's heads, verified against the masked model.

    `mask` may also be heads to remove by layer (`{0: [1, 3]}`), a table of 0 and 1 (layers x
    heads), a text such as "777322", or a mask.json.

    Every removal runs both on `probe` (made up when not given), at once and through a key-value
    cache where the model has one, and is refused when they differ by more than rounding explains.
    """
    small = make_own(remove_sharing(model, mask, probe=probe), unwrap(model))
    known_of(small, small, "sites")  # its weights are others now, and its heads are where they were
    return small


def remove_sharing(
    model: PreTrainedModel,
    mask: MaskLike | Tensor,
    *,
    probe: Mapping[str, Tensor] | None = None,
) -> PreTrainedModel:
    """As `remove`, but what loses nothing stays the very same tensors, so one model is in memory.

    Who changes such a weight in place changes both models: `make_own` comes first.
    """
    model = require_pretrained(unwrap(model), "hc.remove")
    require_numbers(model, "hc.remove")
    mask = mask_for(model, mask)
    layers = sites_of(model)
    sites = [part for site in layers for part in site.each()]
    for site in sites:
        require_whole_groups(site, mask)
    judge = _telling_judge(model, sites, mask, probe)
    require_finite(model, judge.expected[""].final)
    failure = "no way of cutting it is known"
    for way in _ways(model, sites, mask):
        small = _sharing_copy(model)
        small.config.headcount = instructions(model, sites, mask, judge.seen, way)
        small.__class__ = pruned_class(type(model))
        failure = _cut(small, tied=len(sites) > len(layers)) or judge.refusal(small)
        if not failure:
            _remember_sites(small, layers, mask)
            return small
    raise UnsupportedError(
        f"headcount cannot remove heads from {type(model).__name__} "
        f"('{model.config.model_type}') exactly: {failure}; {_whole_layers(model, mask, probe)}"
        "hc.gate(model, mask) hides them in any model, without saving time."
    )


def _whole_layers(model: PreTrainedModel, mask: Mask, probe: Mapping[str, Tensor] | None) -> str:
    """Advice for a model that cannot lose some heads of a layer, where it can lose all of them."""
    layers = {(head.stack, head.layer) for head in mask.dropped}
    parts = sorted(layer for layer in layers if mask.indices(*layer))
    if not parts:
        return ""
    heads = [head for head in mask.layout if (head.stack, head.layer) == parts[0]]
    try:
        remove(model, Mask.full(mask.layout).drop(heads), probe=probe)
    except HeadcountError:
        return ""
    return "all heads of a layer can be removed from it (the method 'layers'), and "


def _remember_sites(small: PreTrainedModel, sites: list[Site], mask: Mask) -> None:
    """Where every head has keys of its own, what is left is known without another walk."""
    if all(site.groups == site.heads for site in sites):
        left = [len(mask.indices(site.stack, site.layer)) for site in sites]
        kept = [replace(site, heads=n, groups=n) for site, n in zip(sites, left, strict=True)]
        remembered(small, "sites", lambda: tuple(kept))


def require_whole_groups(site: Site, mask: Mask) -> None:
    """Heads that share keys and values go together, or the same number in each group."""
    if not site.groups or site.groups == site.heads:
        return
    size = site.heads // site.groups
    kept = mask.indices(site.stack, site.layer)
    counts = [sum(head // size == group for head in kept) for group in range(site.groups)]
    if len({count for count in counts if count}) > 1:
        even = " or ".join(_listed([number] * site.groups) for number in sorted({*counts} - {0}))
        raise UsageError(
            f"{site.stack} layer {site.layer} would keep {_listed(counts)} heads of its "
            f"{site.groups} key-value groups of {size}, which share keys and values: keep whole "
            f"groups, or the same number in each, as in {even}."
        )


def _listed(counts: list[int]) -> str:
    *most, last = map(str, counts)
    return f"{', '.join(most)} and {last}" if most else last


def _telling_judge(
    model: PreTrainedModel, sites: list[Site], mask: Mask, probe: Mapping[str, Tensor] | None
) -> RoundingTest:
    """The masked model on an input on which every layer that is cut is heard."""
    if probe is not None:
        return _judge_on(model, sites, dict(probe), mask)
    try:
        return _judge_on(model, sites, find_probe(model), mask)
    except UnsupportedError as short:
        # sparse attention may need more tokens than a few
        try:
            return _judge_on(model, sites, find_probe(model, length=40, seed=1), mask)
        except UnsupportedError:
            raise short from None


def _judge_on(
    model: PreTrainedModel, sites: list[Site], inputs: dict[str, Any], mask: Mask
) -> RoundingTest:
    try:
        judge = RoundingTest(model, sites, inputs, mask)
    except HeadcountError:
        raise
    except Exception as error:
        words = in_words(error)
        raise UsageError(f"{type(model).__name__} does not run on the probe: {words}.") from error
    require_seen(model, sites, judge.seen, mask)
    return judge


def _ways(model: PreTrainedModel, sites: list[Site], mask: Mask) -> Iterator[CutWay]:
    """The ways of cutting worth trying, likeliest first; verification picks the right one."""
    names = {child for site in sites for child, kind in site.projections if kind == "fused"}
    fused = ["grouped", "qkv"] if "query_key_value" in names else ["qkv", "grouped"]
    kinds = sorted(emptied_kinds(model, sites, mask))
    # layers without heads are skipped; those of some kinds run better as they are
    several = range(len(kinds) + 1) if len(kinds) <= 3 else (0, len(kinds))
    as_they_are = [
        set(some) for number in several for some in itertools.combinations(kinds, number)
    ]
    for widths, running, order in itertools.product(
        (False, True), as_they_are, fused if names else ("",)
    ):
        yield CutWay(order, frozenset(running), widths)


def _cut(small: PreTrainedModel, *, tied: bool) -> str:
    """Carry out the instructions; why that failed, or an empty string."""
    try:
        cut.cut_model(small, cut.sites_in(small.config))
        cut.add_paths(small, cut.paths_in(small.config))
        if tied:
            small.tie_weights()  # each place of the same weights was cut on its own
    except Exception as error:
        return f"its layers cannot be cut ({in_words(error)})"
    return ""


def _sharing_copy(model: PreTrainedModel) -> PreTrainedModel:
    """A copy with the same parameters in it: a cut replaces those it cuts, so the rest can wait."""
    return copy.deepcopy(model, {id(p): p for p in model.parameters()})


def make_own(part: Part, model: nn.Module) -> Part:
    """Give a module parameters of its own where it shares the model's; tied ones stay tied."""
    shared = {id(parameter) for parameter in model.parameters()}
    memo: dict[int, object] = {}
    for module in part.modules():
        for name, parameter in module._parameters.items():
            if id(parameter) in shared:
                module._parameters[name] = copy.deepcopy(parameter, memo)
    return part
