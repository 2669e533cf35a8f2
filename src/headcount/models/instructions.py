"""The instructions in `config.headcount` that `cut.py` carries out."""

from __future__ import annotations

import json
import zlib
from typing import Any, NamedTuple

from torch import nn

from headcount.base.json_object import JsonDict
from headcount.heads import Mask
from headcount.models.cut import (
    WrittenPath,
    add_biases,
    add_paths,
    biases_in,
    paths_in,
    settings_of,
    sites_in,
)
from headcount.models.origin import base_name
from headcount.models.seen import SiteProbe
from headcount.models.sites import PER_HEAD_PARAMETERS, Site

HEADS = ("num_attention_heads", "num_heads", "n_heads", "n_head")
GROUPS = ("num_key_value_heads", "num_kv_heads", "n_kv_heads")
GROUP_SIZE = ("num_key_value_groups",)
WIDTH = ("all_head_size", "inner_dim", "split_size", "attn_dim")
MAYBE_WIDTH = ("embed_dim", "hidden_size", "dim", "d_model")
VERSION = 1


class CutWay(NamedTuple):
    """One way of cutting a model."""

    fused: str = "qkv"
    """How fused projections mix queries, keys and values."""
    running: frozenset[str] = frozenset()
    """Classes whose layers without heads run as they are; the others are skipped."""
    widths: bool = False
    """Whether attributes that may be the heads' width or the model's are the heads'."""
    narrow: str = ""
    """Where layers keep their width: what loses weights, "all", "values" or the "output"."""


def instructions(
    model: nn.Module, sites: list[Site], mask: Mask, seen: dict[str, SiteProbe], way: CutWay
) -> JsonDict:
    """What `cut.cut_model` must do to the full model to get the mask's heads."""
    settings = settings_of(model)
    earlier = {site["path"]: site for site in sites_in(settings)}
    written = []
    for site in sites:
        kept = list(mask.indices(site.stack, site.layer))
        before = earlier.get(site.path)
        if len(kept) == site.heads and before is None:
            continue
        module = model.get_submodule(site.path)
        share = before["share"] if before else seen[site.path].share
        entry = {
            "path": site.path,
            "out": site.out,
            "stack": site.stack,
            "layer": site.layer,
            "projections": [[c, way.fused if k == "fused" else k] for c, k in site.projections],
            "head_dim": site.head_dim,
            "heads": site.heads,
            "groups": site.groups,
            "kept": kept,
            "attributes": attributes(module, site, kept, way.widths),
            "parameters": parameters(module, site),
            "share": share,
            "empty": "",
        }
        if not kept and kind_of(module) not in way.running:
            entry["empty"] = "relative-skip" if "relative" in share else "skip"
            entry["returns"] = seen[site.path].returns
            entry["batch_axis"] = seen[site.path].batch_axis
        if kept and (before.get("narrow") if before else way.narrow):
            entry |= {"narrow": way.narrow, "attributes": {}, "parameters": {}, "share": ""}
        if before:
            kept_keys = ("projections", "heads", "groups", "parameters", "head_dim", "out")
            kept_keys += ("narrow",) if kept and "narrow" in before else ()
            entry |= {key: before[key] for key in kept_keys}
            entry["kept"] = [before["kept"][index] for index in kept]
        written.append(entry)
    plain: JsonDict = {"version": VERSION, "base": base_name(settings), "sites": written}
    return with_parts(plain, biases_in(settings), paths_in(settings))


def with_parts(instructions: JsonDict, biases: list[str], linear: list[WrittenPath]) -> JsonDict:
    """The same instructions with exactly these projections that got a bias and these linear paths,
    and their check."""
    plain = {key: instructions[key] for key in ("version", "base", "sites")}
    plain |= {"biases": biases} if biases else {}
    plain |= {"linear": linear} if linear else {}
    return plain | {"check": checksum(plain["sites"], biases, linear)}


def checksum(
    sites: list[JsonDict],
    biases: list[str] | None = None,
    linear: list[WrittenPath] | None = None,
) -> int:
    """A number over the instructions, by which a damaged file is noticed."""
    written = [*sites, *([biases] if biases else []), *(linear or [])]
    return zlib.crc32(json.dumps(written, sort_keys=True).encode())


def set_biases(model: nn.Module, paths: list[str]) -> None:
    """Give exactly these projections of a pruned model a bias that its class does not give them.

    New ones are zero; those that had one and are not named lose it.
    """
    config: Any = settings_of(model)
    for path in biases_in(config):
        if path not in paths:
            model.get_submodule(path).register_parameter("bias", None)
    add_biases(model, paths)
    config.headcount = with_parts(config.headcount, paths, paths_in(config))


def set_paths(model: nn.Module, linear: list[WrittenPath]) -> None:
    """Give attention modules of a pruned model exactly these linear paths; new ones are zero."""
    config: Any = settings_of(model)
    for written in paths_in(config):
        if written not in linear:
            module, out = (model.get_submodule(written[name]) for name in ("path", "out"))
            path = module.linear_path
            del module.linear_path
            vars(module)["linear_path"] = None
            for hooks in (module._forward_pre_hooks, out._forward_hooks):
                for key, hook in [*hooks.items()]:
                    if getattr(hook, "__self__", None) is path:
                        del hooks[key]
    add_paths(model, linear)
    config.headcount = with_parts(config.headcount, biases_in(config), linear)


def kind_of(module: nn.Module) -> str:
    """The name of the module's class, whatever headcount put in front of it."""
    return type(module).__name__


def emptied_kinds(model: nn.Module, sites: list[Site], mask: Mask) -> set[str]:
    """The classes of the layers that lose all their heads."""
    return {
        kind_of(model.get_submodule(site.path))
        for site in sites
        if not mask.indices(site.stack, site.layer)
    }


def attributes(module: nn.Module, site: Site, kept: list[int], widths: bool) -> dict[str, int]:
    """The numbers on the module that count heads, with their new values."""
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


def parameters(module: nn.Module, site: Site) -> dict[str, int]:
    """The module's and its children's parameters with one entry per head, and its axis."""
    shapes = {name: parameter.shape for name, parameter in module.named_parameters()}
    return {
        name: axis
        for name, axis in PER_HEAD_PARAMETERS.items()
        if name in shapes and shapes[name][axis] == site.heads
    }
