"""Checkpoints whose layers differ as other tools write it, read as heads that are gone.

`per_layer_config` (transformers' own key, which vLLM and others read) gives layers other numbers of
heads; transformers 5 builds most models without it. Nemotron-NAS writes `block_configs`, whose
layers no class of transformers has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headcount.base.errors import NotFoundError, UnsupportedError
from headcount.base.text import short
from headcount.heads import Head

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

    from headcount.models.sites import Site

NUMBERS = ("num_attention_heads", "num_key_value_heads")
FLAG = "allow_global_per_layer_attribute_access"
PerLayer = dict[int, dict[str, object]]


def take_layers(written: dict[str, object], file: object) -> PerLayer:
    """What a config says of single layers, taken out of it; damaged or unknown ones are refused."""
    if "block_configs" in written:
        raise _nas(written["block_configs"], file)
    layers = written.pop("per_layer_config", None)
    written.pop(FLAG, None)
    if layers is None:
        return {}
    if not isinstance(layers, Mapping):
        raise _damaged(file, f"is {short(layers)}, not settings by layer")
    read: PerLayer = {}
    for layer, settings in layers.items():
        if not str(layer).isdecimal() or not isinstance(settings, Mapping):
            raise _damaged(file, f"has {short(layer)}: {short(settings)}")
        for name in NUMBERS:
            number = settings.get(name, 0)
            if isinstance(number, bool) or not isinstance(number, int) or number < 0:
                raise _damaged(file, f"gives layer {layer} {name} {short(number)}")
        read[int(layer)] = dict(settings)
    return read


def heads_gone(config: PreTrainedConfig, sites: Sequence[Site], layers: PerLayer) -> list[Head]:
    """The heads that single layers do not have, of a model built without their settings."""
    if len({site.stack for site in sites}) != 1:
        raise UnsupportedError(
            f"per_layer_config of '{config.model_type}' does not say which of its stacks it means."
        )
    by_layer = {site.layer: site for site in sites}
    gone: list[Head] = []
    for layer, settings in layers.items():
        site = by_layer.get(layer)
        if site is None:
            raise UnsupportedError(f"per_layer_config names layer {layer} of {len(by_layer)}.")
        for name, value in settings.items():
            if name not in NUMBERS and value != getattr(config, name, None):
                raise UnsupportedError(
                    f"per_layer_config gives layer {layer} {name} {short(value)}: headcount builds "
                    "layers with other numbers of heads, nothing else; load it with the code it "
                    "came with."
                )
        gone += _gone(site, *_numbers(site, settings))
    return gone


def _numbers(site: Site, settings: Mapping[str, object]) -> tuple[int, int]:
    heads, groups = (
        settings.get(name, usual)
        for name, usual in zip(NUMBERS, (site.heads, site.groups), strict=True)
    )
    assert isinstance(heads, int)  # as they were read
    assert isinstance(groups, int)
    return heads, groups if heads else 0


def _gone(site: Site, heads: int, groups: int) -> list[Head]:
    """The heads that a layer with so many has not: the first ones are taken to be there."""
    size = site.heads // site.groups
    if heads and (not 0 < groups <= site.groups or heads % groups or heads // groups > size):
        raise UnsupportedError(
            f"per_layer_config gives layer {site.layer} {heads} heads on {groups} key-value heads, "
            f"which are no part of the model's {site.heads} on {site.groups}."
        )
    inside = heads // groups if heads else 0
    return [
        Head(site.stack, site.layer, head)
        for head in range(site.heads)
        if head // size >= groups or head % size >= inside
    ]


def _nas(blocks: object, file: object) -> Exception:
    """The refusal of a Nemotron-NAS config, which says what its layers are."""
    kinds: Counter[str] = Counter()
    if not isinstance(blocks, list) or not blocks:
        return NotFoundError(f"{file} is damaged: block_configs is {short(blocks)}.")
    for layer, block in enumerate(blocks):
        attention = block.get("attention") if isinstance(block, Mapping) else None
        if not isinstance(attention, Mapping):
            return NotFoundError(
                f"{file} is damaged: block_configs says nothing of the attention of layer {layer}."
            )
        if attention.get("no_op"):
            kinds["no attention"] += 1
        elif attention.get("replace_with_linear"):
            kinds["a linear layer in its place"] += 1
        else:
            kinds[f"{attention.get('n_heads_in_group')} heads to a key-value head"] += 1
    layers = ", ".join(f"{count} with {name}" for name, count in kinds.items())
    return UnsupportedError(
        f"{file} is a Nemotron-NAS model of {len(blocks)} layers ({layers}): transformers has no "
        "class with such layers, so headcount cannot build it; prune the Llama it was made from."
    )


def _damaged(file: object, what: str) -> NotFoundError:
    return NotFoundError(f"{file} is damaged: per_layer_config {what}.")
