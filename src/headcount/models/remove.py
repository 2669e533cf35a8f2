"""Take heads out of a model for good, and prove that the rest answers as if they were masked."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor, nn
from transformers import PreTrainedModel

from headcount.errors import UnsupportedError, UsageError
from headcount.heads import Mask, write_counts
from headcount.models import cut
from headcount.models.find import require_layout, sites_of, unwrap
from headcount.models.gates import gate
from headcount.models.hooks import hooked
from headcount.models.origin import base_name
from headcount.models.probe import TOLERANCE, find_probe, relative_difference, require_finite, run
from headcount.models.pruned import pruned_class
from headcount.models.sites import PER_HEAD_PARAMETERS, Site

HEADS = ("num_attention_heads", "num_heads", "n_heads", "n_head")
GROUPS = ("num_key_value_heads", "num_kv_heads", "n_kv_heads")
GROUP_SIZE = ("num_key_value_groups",)
WIDTH = ("all_head_size", "inner_dim", "split_size")
MAYBE_WIDTH = ("embed_dim", "hidden_size", "dim", "d_model")


def remove(
    model: PreTrainedModel, mask: Mask, *, probe: Mapping[str, Any] | None = None
) -> PreTrainedModel:
    """A copy of `model` with only the mask's heads, verified against the masked model.

    Every removal runs both on `probe` (made up when not given) and is refused when they differ.
    """
    model = _pretrained(unwrap(model))
    require_layout(model, mask.layout)
    sites = sites_of(model)
    for site in sites:
        require_whole_groups(site, mask)
    inputs = dict(probe) if probe is not None else find_probe(model)
    reached, shares = _watch(model, sites, inputs)
    missed = [
        site.path
        for site in sites
        if site.path not in reached and len(mask.indices(site.stack, site.layer)) < site.heads
    ]
    if missed:
        raise UnsupportedError(
            f"The probe input does not reach {missed[0]}, so removing its heads cannot be "
            "verified; pass one that does with probe=."
        )
    expected = _answers(model, sites, inputs, mask)
    require_finite(model, expected[0])
    failure = "no way of cutting it is known"
    for attempt in _attempts(sites, mask):
        small = copy.deepcopy(model)
        small.config.headcount = instructions(model, sites, mask, shares, *attempt)
        small.__class__ = pruned_class(type(model))
        try:
            cut.cut_model(small, small.config.headcount)
            difference = _difference(expected, _answers(small, sites, inputs, None))
        except Exception as error:
            words = " ".join(f"{type(error).__name__}: {error}".split())[:160]
            failure = f"it does not run with fewer heads ({words})"
            continue
        if difference <= TOLERANCE.get(model.dtype, 1e-5):
            return small
        failure = f"its answers differ from the masked model's by {difference:.2g} of their size"
    raise UnsupportedError(
        f"headcount cannot remove heads from {type(model).__name__} "
        f"('{model.config.model_type}') exactly: {failure}."
    )


def require_whole_groups(site: Site, mask: Mask) -> None:
    """Heads that share keys and values go together, or the same number in each group."""
    if not site.groups or site.groups == site.heads:
        return
    size = site.heads // site.groups
    kept = mask.indices(site.stack, site.layer)
    counts = [sum(head // size == group for head in kept) for group in range(site.groups)]
    if len({count for count in counts if count}) > 1:
        raise UsageError(
            f"{site.stack} layer {site.layer} would keep {write_counts(counts)} heads in its "
            f"{site.groups} key-value groups of {size}: heads of a group share keys and values, "
            "so remove whole groups or the same number in each."
        )


def instructions(
    model: PreTrainedModel,
    sites: list[Site],
    mask: Mask,
    shares: dict[str, str],
    fused: str,
    empty: str,
    widths: bool,
) -> dict[str, Any]:
    """What `cut.cut_model` must do to the full model to get the mask's heads."""
    earlier = {s["path"]: s for s in getattr(model.config, "headcount", {}).get("sites", [])}
    written = []
    for site in sites:
        kept = list(mask.indices(site.stack, site.layer))
        before = earlier.get(site.path)
        if len(kept) == site.heads and before is None:
            continue
        module = model.get_submodule(site.path)
        share = before["share"] if before else shares.get(site.path, "")
        how = {"skip": "relative-skip"}.get(empty, empty) if "relative" in share else empty
        entry = {
            "path": site.path,
            "out": site.out,
            "stack": site.stack,
            "layer": site.layer,
            "projections": [[c, fused if k == "fused" else k] for c, k in site.projections],
            "head_dim": site.head_dim,
            "heads": site.heads,
            "groups": site.groups,
            "kept": kept,
            "attributes": _attributes(module, site, kept, widths),
            "parameters": _parameters(module, site),
            "share": share,
            "empty": "" if kept else how,
        }
        if before:
            entry |= {key: before[key] for key in ("projections", "heads", "groups")}
            entry["kept"] = [before["kept"][index] for index in kept]
        written.append(entry)
    return {"version": 1, "base": base_name(model.config), "sites": written}


def _attempts(sites: list[Site], mask: Mask) -> Iterator[tuple[str, str, bool]]:
    """The ways of cutting worth trying, likeliest first; verification picks the right one."""
    names = {child for site in sites for child, kind in site.projections if kind == "fused"}
    fused = ["grouped", "qkv"] if "query_key_value" in names else ["qkv", "grouped"]
    some_empty = any(not count for counts in mask.counts().values() for count in counts)
    for widths, empty, order in itertools.product(
        (False, True), ("skip", "") if some_empty else ("",), fused if names else ("",)
    ):
        yield order, empty, widths


def _attributes(module: nn.Module, site: Site, kept: list[int], widths: bool) -> dict[str, int]:
    size = site.heads // site.groups if site.groups else 1
    kept_groups = len({head // size for head in kept})
    new = dict.fromkeys(HEADS, (site.heads, len(kept)))
    new |= dict.fromkeys(GROUPS, (site.groups, kept_groups))
    if kept:
        new |= dict.fromkeys(GROUP_SIZE, (size, len(kept) // kept_groups))
    names = WIDTH + MAYBE_WIDTH if widths else WIDTH
    new |= dict.fromkeys(names, (site.heads * site.head_dim, len(kept) * site.head_dim))
    return {
        name: value for name, (old, value) in new.items() if vars(module).get(name, None) == old
    }


def _parameters(module: nn.Module, site: Site) -> dict[str, int]:
    return {
        name: axis
        for name, axis in PER_HEAD_PARAMETERS.items()
        if isinstance(getattr(module, name, None), nn.Parameter)
        and getattr(module, name).shape[axis] == site.heads
    }


def _pretrained(model: nn.Module) -> PreTrainedModel:
    if not isinstance(model, PreTrainedModel):
        raise UsageError(f"hc.remove takes a transformers model, not {type(model).__name__}.")
    return model


def watch_lending(model: nn.Module, sites: list[Site]) -> dict[str, str]:
    """How each site shares what the model lends per head; works on a skeleton, too."""
    return _watch(model, sites, find_probe(model))[1]


def _watch(
    model: nn.Module, sites: list[Site], inputs: Mapping[str, Any]
) -> tuple[set[str], dict[str, str]]:
    """Which sites the inputs reach, and which are lent something per head by the model."""
    reached: set[str] = set()
    shares: dict[str, str] = {}

    def watch(site: Site):
        def look(module: Any, args: tuple, kwargs: dict) -> None:
            reached.add(site.path)
            if hasattr(module, "has_relative_attention_bias") and hasattr(module, "compute_bias"):
                shares[site.path] = "relative-share"
                return
            lent = [kwargs.get(name) for name in cut.PER_HEAD_ARGUMENTS] + list(args[1:])
            if isinstance(kwargs.get("alibi"), Tensor) or any(
                isinstance(t, Tensor) and t.ndim == 4 and t.shape[1] == site.heads > 1 for t in lent
            ):
                shares[site.path] = "share"

        return lambda: model.get_submodule(site.path).register_forward_pre_hook(
            look, with_kwargs=True
        )

    with hooked([watch(site) for site in sites]):
        run(model, inputs)
    return reached, shares


def _answers(
    model: nn.Module, sites: list[Site], inputs: Mapping[str, Any], mask: Mask | None
) -> tuple[list[Tensor], dict[str, list[Tensor]]]:
    """The model's answers, and what each attention layer added on the way."""
    added: dict[str, list[Tensor]] = {}

    def keep(path: str):
        return lambda _module, _args, out: added.setdefault(path, []).append(out.detach())

    hooks = [
        lambda site=site: model.get_submodule(site.out).register_forward_hook(keep(site.path))
        for site in sites
    ]
    with hooked(hooks):
        if mask is None:
            return run(model, inputs), added
        with gate(model, mask):
            return run(model, inputs), added


def _difference(
    expected: tuple[list[Tensor], dict[str, list[Tensor]]],
    found: tuple[list[Tensor], dict[str, list[Tensor]]],
) -> float:
    """The largest relative difference in the answers or in what any one layer added."""
    # an emptied layer may add its bias without calling the projection
    both = [path for path in expected[1] if path in found[1]]
    return max(
        relative_difference(expected[0], found[0]),
        *(relative_difference(expected[1][path], found[1][path]) for path in both),
        0.0,
    )
