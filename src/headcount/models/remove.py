"""Take heads out of a model for good, and prove that the rest answers as if they were masked."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeVar, cast

from torch import Tensor, nn
from transformers import PreTrainedModel

from headcount.base.errors import HeadcountError, UnsupportedError, UsageError, in_words
from headcount.heads import Mask
from headcount.heads.as_mask import MaskLike
from headcount.models import cut
from headcount.models.door import require_numbers, require_runnable
from headcount.models.find import mask_for, sites_of, unwrap
from headcount.models.instructions import CutWay, emptied_kinds, instructions
from headcount.models.memory import known_of, remembered
from headcount.models.probe import require_finite
from headcount.models.probes import ModelProbe, ProbeLike, as_probes, find_probes
from headcount.models.pruned import pruned_class
from headcount.models.seen import joined, require_seen
from headcount.models.sites import Site
from headcount.models.verify import RoundingTest

Part = TypeVar("Part", bound=nn.Module)
Model = TypeVar("Model", bound=nn.Module)


def remove(
    model: Model,
    mask: MaskLike | Tensor,
    *,
    probe: ProbeLike | None = None,
) -> Model:
    """A copy of `model` with only the mask's heads, verified against the masked model.

    `mask` may also be heads to remove by layer (`{0: [1, 3]}`), a table of 0 and 1 (layers x
    heads), a text such as "777322", or a mask.json.

    Every removal runs both on `probe` (made up when not given; a dict of tensors, a function that
    runs the model it is given, or a list of these), at once and through a key-value cache where
    the model has one, and is refused when they differ by more than rounding explains.
    """
    small = make_own(remove_sharing(model, mask, probe=probe), unwrap(model))
    known_of(small, small, "sites")  # its weights are others now, and its heads are where they were
    return small


def remove_sharing(
    model: Model,
    mask: MaskLike | Tensor,
    *,
    probe: ProbeLike | None = None,
) -> Model:
    """As `remove`, but what loses nothing stays the very same tensors, so one model is in memory.

    Who changes such a weight in place changes both models: `make_own` comes first.
    """
    whole = unwrap(model)
    require_numbers(require_runnable(whole, "hc.remove", probe), "hc.remove")
    model = cast("Model", whole)
    mask = mask_for(model, mask)
    layers = sites_of(model)
    sites = [part for site in layers for part in site.each()]
    for site in sites:
        require_whole_groups(site, mask)
    judges = _telling_judges(model, sites, mask, probe)
    require_finite(model, [answer for judge in judges for answer in judge.expected[""].final])
    seen = joined(sites, [judge.seen for judge in judges])
    failure = "no way of cutting it is known"
    for way in _ways(model, sites, mask):
        small = _sharing_copy(model)
        cut.settings_of(small).headcount = instructions(model, sites, mask, seen, way)
        if isinstance(small, PreTrainedModel):
            small.__class__ = pruned_class(type(small))
        failure = _cut(small, tied=len(sites) > len(layers)) or _refusal(judges, small)
        if not failure:
            _remember_sites(small, layers, mask)
            return small
    kind = getattr(cut.settings_of(model), "model_type", "a plain module")
    raise UnsupportedError(
        f"headcount cannot remove heads from {type(model).__name__} ('{kind}') exactly: {failure}; "
        f"{_whole_layers(model, mask, probe)}"
        "hc.gate(model, mask) hides them in any model, without saving time."
    )


def _whole_layers(model: nn.Module, mask: Mask, probe: ProbeLike | None) -> str:
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


def _remember_sites(small: nn.Module, sites: list[Site], mask: Mask) -> None:
    """Where every head has keys of its own, what is left is known without another walk."""
    narrow = any("narrow" in entry for entry in cut.sites_in(cut.settings_of(small)))
    narrow = narrow or any(site.out.endswith(".kept") for site in sites)
    if all(site.groups == site.heads for site in sites) and not narrow:
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


def _telling_judges(
    model: nn.Module, sites: list[Site], mask: Mask, probe: ProbeLike | None
) -> list[RoundingTest]:
    """The masked model on inputs on which every layer that is cut is heard."""
    if probe is not None:
        return _judges_on(model, sites, as_probes(probe), mask)
    try:
        return _judges_on(model, sites, find_probes(model, sites), mask)
    except UnsupportedError as short:
        # sparse attention may need more tokens than a few
        try:
            return _judges_on(model, sites, find_probes(model, sites, length=40, seed=1), mask)
        except UnsupportedError:
            raise short from None


def _judges_on(
    model: nn.Module, sites: list[Site], probes: Iterable[ModelProbe], mask: Mask
) -> list[RoundingTest]:
    judges = []
    for probe in probes:
        try:
            judges.append(RoundingTest(model, sites, probe, mask))
        except HeadcountError:
            raise
        except Exception as error:
            words = in_words(error)
            raise UsageError(
                f"{type(model).__name__} does not run on the probe: {words}."
            ) from error
    require_seen(model, sites, joined(sites, [judge.seen for judge in judges]), mask)
    return judges


def _refusal(judges: list[RoundingTest], small: nn.Module) -> str:
    """Why the smaller model is not the masked one, by the first probe that shows it."""
    return next(filter(None, (judge.refusal(small) for judge in judges)), "")


def _ways(model: nn.Module, sites: list[Site], mask: Mask) -> Iterator[CutWay]:
    """The ways of cutting worth trying, likeliest first; verification picks the right one."""
    names = {child for site in sites for child, kind in site.projections if kind == "fused"}
    fused = ["grouped", "qkv"] if "query_key_value" in names else ["qkv", "grouped"]
    kinds = sorted(emptied_kinds(model, sites, mask))
    # layers without heads are skipped; those of some kinds run better as they are
    several = range(len(kinds) + 1) if len(kinds) <= 3 else (0, len(kinds))
    as_they_are = [
        set(some) for number in several for some in itertools.combinations(kinds, number)
    ]
    orders = fused if names else [""]
    for widths, running, order in itertools.product((False, True), as_they_are, orders):
        yield CutWay(order, frozenset(running), widths)
    # layers that keep their width run in any code, and save less
    for narrow, running, order in itertools.product(
        ("all", "values", "output"), as_they_are, orders
    ):
        yield CutWay(order, frozenset(running), narrow=narrow)


def _cut(small: nn.Module, *, tied: bool) -> str:
    """Carry out the instructions; why that failed, or an empty string."""
    try:
        settings = cut.settings_of(small)
        cut.cut_model(small, cut.sites_in(settings))
        cut.add_paths(small, cut.paths_in(settings))
        if tied and isinstance(small, PreTrainedModel):
            small.tie_weights()  # each place of the same weights was cut on its own
    except Exception as error:
        return f"its layers cannot be cut ({in_words(error)})"
    return ""


def _sharing_copy(model: Part) -> Part:
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
