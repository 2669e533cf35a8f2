"""Export as a plain checkpoint with fewer heads: a config that says them, and no code of its own.

A config has one number of heads for all layers of a stack, so each must have as many (`prune
--uniform`), and the size of a head must not be computed from their number.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import torch
from transformers import PreTrainedConfig, PreTrainedModel

from headcount.base.errors import UnsupportedError, UsageError
from headcount.exports.checkpoint import plain_class, quiet, require_no_paths, verified_again
from headcount.exports.formats import ExportFormat, ReadBack
from headcount.exports.inputs import Probes
from headcount.models import cut
from headcount.models.config import parts_of
from headcount.models.find import sites_of
from headcount.models.sites import Site
from headcount.models.weights import adopt_pooler

HEADS = ("num_attention_heads", "num_heads", "n_head", "n_heads", "num_query_heads")
GROUPS = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num")
SIZES = ("head_dim", "d_kv", "kv_channels", "attention_head_dim")
NO_SETTING = (
    "{} has no setting for fewer heads of the same size: {}. Export to standalone, onnx or zeroed."
)


class Stock(ExportFormat):
    """A small checkpoint that plain transformers and servers load by its config alone."""

    loads = 'model = {auto}.from_pretrained("path/to/this/folder")'

    def write(self, model: PreTrainedModel, folder: Path, probes: Probes) -> ReadBack:
        """The weights as they are, and the config with the numbers of heads that are left."""
        if not cut.sites_in(model.config):
            raise UsageError(
                f"This {plain_class(model).__name__} has all its heads: plain transformers loads "
                "it as it is."
            )
        require_no_paths(model, "a plain checkpoint")
        with quiet():
            _plain(model).save_pretrained(folder)
            return verified_again(model, plain_class(model), folder, probes)


def _plain(model: PreTrainedModel) -> PreTrainedModel:
    """The model as an object of its plain class, with its own weights."""
    kind, config = plain_class(model), stock_config(model)
    if biases := cut.biases_in(model.config):
        if not hasattr(config, "attention_bias"):
            raise UnsupportedError(
                f"{biases[0]} got a bias by recovery, and {kind.__name__} has none there: export "
                "to standalone, or recover without --bias."
            )
        config.attention_bias = True  # Llama's word for biases of all four projections
    try:
        with torch.device("meta"):
            plain = adopt_pooler(kind(config), model)
    except ValueError as error:  # the hidden size must be a multiple of the number of heads
        raise UnsupportedError(NO_SETTING.format(kind.__name__, error)) from error
    state, shapes = model.state_dict(), plain.state_dict()
    if biases:
        state |= {
            name: torch.zeros(shape.shape, dtype=model.dtype, device=model.device)
            for name, shape in shapes.items()
            if name not in state and name.endswith("_proj.bias")
        }
    wrong = [name for name, tensor in shapes.items() if tensor.shape != _shape(state.get(name))]
    if wrong or state.keys() - shapes.keys():
        name = (wrong or sorted(state.keys() - shapes.keys()))[0]
        reason = f"its config gives {name} another shape"
        raise UnsupportedError(NO_SETTING.format(kind.__name__, reason))
    plain.load_state_dict(state, assign=True)
    plain.tie_weights()
    if model.can_generate():
        plain.generation_config = copy.deepcopy(model.generation_config)
    return plain


def _shape(tensor: torch.Tensor | None) -> torch.Size | None:
    return None if tensor is None else tensor.shape


def stock_config(model: PreTrainedModel) -> PreTrainedConfig:
    """The config with the heads that are left; refused where layers of a stack differ."""
    config = copy.deepcopy(model.config)
    for written in ("headcount", "pruned_heads", "auto_map"):
        vars(config).pop(written, None)
    stacks: dict[str, list[Site]] = {}
    for site in sites_of(model):
        stacks.setdefault(site.stack, []).append(site)
    before = {(entry["stack"], entry["layer"]): entry for entry in cut.sites_in(model.config)}
    for name, sites in stacks.items():
        first = sites[0]
        require_uniform(name, sites)
        full = before.get((name, first.layer), {"heads": first.heads, "groups": first.groups})
        for part in parts_of(config):
            prefix = {"encoder": "encoder_", "cross": "decoder_", "decoder": "decoder_"}[name]
            changed = [
                setting
                for settings, old, new in (
                    (HEADS, full["heads"], first.heads),
                    (GROUPS, full["groups"], first.groups),
                )
                for setting in _settings(part, prefix, settings)
                if _set(part, setting, old, new)
            ]
            if changed:
                _say_size(part, first.head_dim)
    return config


def require_uniform(name: str, sites: list[Site]) -> None:
    """Refuse layers with other numbers of heads than the first, and layers without any."""
    shape = sites[0].heads, sites[0].groups
    for site in sites:
        if not site.heads or (site.heads, site.groups) != shape:
            has = f"{site.heads} heads on {site.groups} key-value heads" if site.heads else "none"
            other = "" if site is sites[0] else f", and layer 0 has {shape[0]} on {shape[1]}"
            raise UnsupportedError(
                f"A plain config has one number of heads for all layers: {name} layer "
                f"{site.layer} has {has}{other}. Prune with --uniform, or export to standalone, "
                "vllm, gguf or onnx, which hold layers that differ."
            )


def _settings(part: PreTrainedConfig, prefix: str, names: tuple[str, ...]) -> Iterator[str]:
    """The names that this part of a config has for a number; a stack's own first and alone."""
    specific = [prefix + name.removeprefix("num_") for name in names]
    named = [setting for setting in specific if hasattr(part, setting)]
    yield from named or (setting for setting in names if hasattr(part, setting))


def _set(part: PreTrainedConfig, setting: str, old: int, new: int) -> bool:
    if getattr(part, setting) != old:
        return False
    setattr(part, setting, new)
    return True


def _say_size(part: PreTrainedConfig, size: int) -> None:
    """Write the size of a head down: else it would be computed from their number."""
    named = [setting for setting in SIZES if hasattr(part, setting)]
    for setting in named or ["head_dim"]:
        with suppress(AttributeError):  # Falcon computes it, and its shapes are refused later
            setattr(part, setting, size)
