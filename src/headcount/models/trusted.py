"""What a model folder says, checked before anything is built or read by it."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel

from headcount.base.errors import HeadcountError, NotFoundError
from headcount.heads import STACKS
from headcount.models.config import LARGEST, describes_none, silent
from headcount.models.cut import WrittenPath
from headcount.models.instructions import VERSION, attributes, checksum
from headcount.models.linear import has_bias
from headcount.models.seen import SiteProbe, watch_lending
from headcount.models.sites import PER_HEAD_PARAMETERS, Site, find_sites, linear_sizes

FIELDS: dict[str, type] = {
    "path": str,
    "out": str,
    "stack": str,
    "layer": int,
    "projections": list,
    "head_dim": int,
    "heads": int,
    "groups": int,
    "kept": list,
    "attributes": dict,
    "parameters": dict,
    "share": str,
    "empty": str,
}
"""What every site's instructions have; those of a skipped layer have the next two as well."""
MORE: dict[str, type] = {"returns": int, "batch_axis": int}
LINEAR: dict[str, type] = {"path": str, "out": str, "width": int, "rank": int}
"""What every linear path has."""
NARROW: dict[str, type] = {"narrow": str}
"""And those of a layer that keeps its width this one."""
LONGEST = 300
"""Letters in the name of the model that heads were removed from."""
KINDS = ({"q", "k", "v"}, {"q", "kv"}, {"q"}, {"qkv"}, {"grouped"})
SHARES = ("", "share", "relative-share")
EMPTY = ("", "skip", "relative-skip")


def plain_skeleton(config: PreTrainedConfig, kind: type[PreTrainedModel]) -> PreTrainedModel:
    """The model with all its heads and no memory for its weights."""
    try:
        with torch.device("meta"), silent():
            return kind(config).eval()
    except Exception as error:
        raise describes_none(kind.__name__, error) from error


def require_instructions(
    config: PreTrainedConfig, kind: type[PreTrainedModel], saved: type[PreTrainedModel]
) -> PreTrainedModel:
    """Refuse a `config.headcount` that `instructions` cannot have written for this model.

    `saved` is the class of the saved model, which may have parts that `kind` has not. Returns the
    skeleton of `kind` with all its heads.
    """
    instructions: Any = getattr(config, "headcount", None)
    _refuse(_about_form(instructions))
    bones = plain_skeleton(config, kind)
    known = [_Known(bones)]
    if saved is not kind:
        known.append(_Known(plain_skeleton(config, saved)))
    _require_sites(instructions, known)
    return bones


def refuse_other_heads(model: nn.Module, instructions: object) -> None:
    """Refuse instructions that cannot have been written for this module with all its heads."""
    _refuse(_about_form(instructions))
    _require_sites(instructions, [_Known(model)])


def _require_sites(instructions: Any, known: list[_Known]) -> None:
    for entry in instructions["sites"]:
        _refuse(_about_site(entry, known, checked="check" in instructions))
    _refuse(_about_biases(instructions.get("biases", []), known))
    _refuse(_about_linear(instructions.get("linear", []), known))


def _refuse(complaint: str) -> None:
    if complaint:
        raise NotFoundError(
            f"config.headcount, which says the heads that are gone, is damaged: {complaint}. Take "
            "the config.json that was saved with these weights."
        )


def _about_form(instructions: object) -> str:
    """What is wrong with the instructions whatever the model, or an empty string."""
    if not isinstance(instructions, dict) or not isinstance(instructions.get("sites"), list):
        return "it is not an object with a list of sites"
    if instructions.get("version") != VERSION or type(instructions["version"]) is not int:
        return f"its version is {_short(instructions.get('version'))}, not {VERSION}"
    keys = {"version", "base", "sites", "biases", "linear", "check"}
    if not {"version", "sites"} <= set(instructions) <= keys:
        return (
            f"it has {_short(sorted(map(str, instructions)))}, not version, base, sites and check"
        )
    biases = instructions.get("biases", [])
    if type(biases) is not list or not all(type(path) is str for path in biases):
        return f"its biases are {_short(biases)}, not a list of paths"
    linear = instructions.get("linear", [])
    if type(linear) is not list or not all(_is_linear(path) for path in linear):
        return f"its linear paths are {_short(linear)}, not a list of path, out, width and rank"
    if type(instructions.get("base", "")) is not str or len(instructions.get("base", "")) > LONGEST:
        return f"its base is {_short(instructions['base'])}, not a model's name"
    for number, site in enumerate(instructions["sites"]):
        wrong = _about_fields(site)
        if wrong:
            return f"sites[{number}]{wrong}"
    if len({site["path"] for site in instructions["sites"]}) < len(instructions["sites"]):
        return "a path is there twice"
    if "check" in instructions and instructions["check"] != checksum(
        instructions["sites"], biases, linear
    ):
        return "its check number does not fit its sites"
    return ""


def _is_linear(path: object) -> bool:
    return (
        isinstance(path, dict)
        and {name: type(value) for name, value in path.items()} == LINEAR
        and 0 < path["rank"] <= path["width"] <= LARGEST
    )


def _about_fields(site: object) -> str:
    known = FIELDS | MORE | NARROW
    if not isinstance(site, dict) or not FIELDS.keys() <= set(site) <= known.keys():
        return f" does not have the fields {', '.join(FIELDS)}"
    for name, kind in known.items():
        if name in site and type(site[name]) is not kind:
            return f".{name} is {_short(site[name])}"
    heads, kept = site["heads"], site["kept"]
    rules: dict[str, bool] = {
        "stack": site["stack"] in STACKS,
        "layer": site["layer"] >= 0,
        "heads": heads > 0,
        "kept": all(type(head) is int and 0 <= head < heads for head in kept)
        and all(left < right for left, right in pairwise(kept)),
        "share": site["share"] in SHARES,
        "empty": site["empty"] in (EMPTY if not kept else ("",)),
        "returns": 0 <= site.get("returns", 2) <= 8,
        "batch_axis": site.get("batch_axis", 0) in (0, 1),
        "narrow": "narrow" not in site
        or (site["narrow"] in ("all", "values", "output") and bool(kept)),
        "projections": all(
            isinstance(pair, list) and len(pair) == 2 and all(type(t) is str for t in pair)
            for pair in site["projections"]
        ),
    }
    wrong = next((name for name, right in rules.items() if not right), "")
    return wrong and f".{wrong} is {_short(site.get(wrong))}"


class _Known:
    """A full model's attention layers by their paths."""

    def __init__(self, bones: nn.Module) -> None:
        self.bones = bones
        self.prefix = getattr(bones, "base_model_prefix", "") + "."
        places = [part for site in find_sites(bones) for part in site.each()]
        self.sites = {part.path.removeprefix(self.prefix): part for part in places}

    def site(self, path: str) -> Site | None:
        """The site of this path, written with or without the base model's prefix."""
        return self.sites.get(path.removeprefix(self.prefix))

    @cached_property
    def seen(self) -> dict[str, SiteProbe]:
        """What a run shows of every site; nothing where no input is found to run it on."""
        try:
            return watch_lending(self.bones, list(self.sites.values()))
        except (HeadcountError, AttributeError):  # of a plain module no input is known
            return {}


def _about_site(entry: dict[str, Any], known: list[_Known], *, checked: bool) -> str:
    """What in one site's instructions does not fit the model, or an empty string."""
    for model in known:
        site = model.site(entry["path"])
        if site is not None:
            wrong = _about_fit(entry, site, model)
            wrong = wrong or ("" if checked else _about_calls(entry, model.seen.get(site.path)))
            return wrong and f"{entry['path']}: {wrong}"
    return f"this model has no attention layer {_short(entry['path'])}"


def _about_biases(paths: list[str], known: list[_Known]) -> str:
    """Which path that is said to have got a bias cannot, or an empty string."""
    for path in paths:
        fits = False
        for model in known:
            outs = {site.out.removeprefix(model.prefix): site.out for site in model.sites.values()}
            out = outs.get(path.removeprefix(model.prefix))
            fits |= out is not None and not has_bias(model.bones.get_submodule(out))
        if not fits:
            return f"{_short(path)} is no output projection without a bias"
    return ""


def _about_linear(linear: list[WrittenPath], known: list[_Known]) -> str:
    """Which linear path is beside no attention layer, or an empty string."""
    for entry in linear:
        fits = False
        for model in known:
            site = model.site(entry["path"])
            out = entry["out"].removeprefix(model.prefix)
            fits |= site is not None and site.out.removeprefix(model.prefix) == out
        if not fits:
            return f"{_short(entry['path'])} with {_short(entry['out'])} is no attention layer"
    if len({entry["path"] for entry in linear}) < len(linear):
        return "a linear path is there twice"
    return ""


def _about_fit(entry: dict[str, Any], site: Site, model: _Known) -> str:
    module = model.bones.get_submodule(site.path)
    for name in ("head_dim", "heads", "groups"):
        if entry[name] != getattr(site, name):
            return f"{name} is {_short(entry[name])}, not {getattr(site, name)}"
    if entry["out"].removeprefix(model.prefix) != site.out.removeprefix(model.prefix):
        return f"out is {_short(entry['out'])}, not {site.out}"
    if (entry["stack"] == "cross") != (site.stack == "cross"):
        return f"stack is {entry['stack']}, not {site.stack}"
    least, most = (attributes(module, site, entry["kept"], widths) for widths in (False, True))
    least = {} if "narrow" in entry else least
    if not least.items() <= entry["attributes"].items() <= most.items():
        return f"attributes are {_short(entry['attributes'])}, not {least}"
    relative = hasattr(module, "compute_bias") and hasattr(module, "has_relative_attention_bias")
    if (("relative" in entry["share"]) != relative and "narrow" not in entry) or (
        entry["empty"] and ("relative" in entry["empty"]) != relative
    ):
        return f"it takes no share of the kind {_short(entry['share'] or entry['empty'])}"
    return _about_parameters(entry, site, module) or _about_projections(entry, site, module)


def _about_calls(entry: dict[str, Any], seen: SiteProbe | None) -> str:
    """How the layer is called, asked of the model: there is no check number that vouches for it."""
    if seen is None or not seen.reached or "narrow" in entry:
        return ""
    fields = {"share": entry["share"]}
    if entry["empty"]:
        fields |= {name: entry.get(name, getattr(SiteProbe, name)) for name in MORE}
    wrong = next((name for name, value in fields.items() if value != getattr(seen, name)), "")
    return wrong and f"{wrong} is {_short(fields[wrong])}, not {_short(getattr(seen, wrong))}"


def _about_parameters(entry: dict[str, Any], site: Site, module: nn.Module) -> str:
    parameters = dict(module.named_parameters())
    for name, axis in entry["parameters"].items():
        tensor = parameters.get(name) if name in PER_HEAD_PARAMETERS else None
        if tensor is None or axis != PER_HEAD_PARAMETERS[name] or tensor.shape[axis] != site.heads:
            return f"it has no parameter {_short(name)} with heads on axis {_short(axis)}"
    return ""


def _about_projections(entry: dict[str, Any], site: Site, module: nn.Module) -> str:
    children = dict(module.named_children())
    kinds = {kind for _, kind in entry["projections"]}
    if kinds not in KINDS or len({child for child, _ in entry["projections"]}) < len(
        entry["projections"]
    ):
        return f"projections are {_short(entry['projections'])}"
    width = {"q": site.heads, "k": site.groups, "v": site.groups, "kv": 2 * site.groups}
    width |= dict.fromkeys(("qkv", "grouped"), site.heads + 2 * site.groups)
    for child, kind in entry["projections"]:
        sizes = linear_sizes(children[child]) if child in children else None
        if sizes is None or (width[kind] and sizes[1] % width[kind]):
            return f"{_short(child)} is no projection with rows of the kind {kind}"
    return ""


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
