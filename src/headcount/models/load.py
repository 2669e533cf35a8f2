"""Load any transformers model, with its heads removed where headcount or transformers 4 did so."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import CONFIG_MAPPING, AutoConfig, PreTrainedConfig, PreTrainedModel

from headcount.errors import HeadcountError, NotFoundError, UnsupportedError
from headcount.heads import Head, Mask
from headcount.models import cut
from headcount.models.bars import bars_on_terminals_only
from headcount.models.find import layout_of, sites_of
from headcount.models.instructions import Way, instructions
from headcount.models.pruned import pruned_class
from headcount.models.seen import watch_lending
from headcount.models.shipped import locate, no_model
from headcount.models.trusted import (
    plain_skeleton,
    require_instructions,
    require_own_weights,
    require_plain_attention,
)
from headcount.models.weights import require_weights
from headcount.names import require

HEADS = {
    "base": "AutoModel",
    "sequence-classification": "AutoModelForSequenceClassification",
    "token-classification": "AutoModelForTokenClassification",
    "masked-lm": "AutoModelForMaskedLM",
    "causal-lm": "AutoModelForCausalLM",
    "seq2seq-lm": "AutoModelForSeq2SeqLM",
    "image-classification": "AutoModelForImageClassification",
}
"""What stands on top of the model, and the transformers class that brings it."""


def load(
    name: str | os.PathLike[str],
    *,
    head: str | None = None,
    new_head: bool = False,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
    model_type: str | None = None,
    **options: Any,
) -> PreTrainedModel:
    """The model in a folder, on the hub or shipped here: a `PreTrainedModel`, evaluating.

    `head` puts another head on it (see HEADS); the default is what the checkpoint was saved
    with. Weights that the checkpoint lacks are refused by name; with `new_head` those of the head
    may be new, drawn at random, to be trained. `model_type` helps where an old config.json does
    not name its own. `options` go to `from_pretrained` (dtype, device_map, num_labels,
    attn_implementation…).
    """
    said, name = str(name), locate(name)
    wanted = {k: options.pop(k) for k in ("num_labels", "id2label", "label2id") if k in options}
    config = load_config(name, trust_remote_code=trust_remote_code, model_type=model_type, **wanted)
    kind = model_class(config, head)
    require_own_weights(name, allow_pickle)
    if getattr(config, "headcount", None) is not None:
        require_instructions(config, kind, _saved_class(config, kind))
        kind = pruned_class(kind)
    elif getattr(config, "pruned_heads", None):
        config.headcount = from_pruned_heads(kind, config)
        kind = pruned_class(kind)
    options |= {
        "config": config,
        "trust_remote_code": trust_remote_code,
        "output_loading_info": True,
        "ignore_mismatched_sizes": new_head,  # another number of labels needs a new head
        "use_safetensors": None if allow_pickle else True,
    }
    try:
        with bars_on_terminals_only():
            loaded: Any = kind.from_pretrained(name, **options)
    except OSError as error:
        raise NotFoundError(f"Cannot load '{name}': {_first_line(error)}") from error
    except Exception as error:
        if type(error).__name__ == "SafetensorError":
            raise NotFoundError(f"The weights in '{name}' cannot be read: {error}.") from error
        if isinstance(error, RuntimeError) and "mismatched" in str(error):
            raise _other_sizes(name, wanted) from error
        raise
    model, report = loaded
    require_weights(said, model, report, new_head=new_head)
    return model.eval()


def load_config(
    name: str | os.PathLike[str],
    *,
    trust_remote_code: bool = False,
    model_type: str | None = None,
    **changes: Any,
) -> PreTrainedConfig:
    """The config of a model folder, a config.json or a hub name."""
    name = locate(name)
    path = Path(name)
    file = path / "config.json" if path.is_dir() else path
    if path.is_dir() and not file.is_file():
        raise NotFoundError(f"'{name}' is not a model folder: it has no config.json.")
    kind: Any = _config_class(file, model_type) if file.is_file() else AutoConfig
    try:
        config = kind.from_pretrained(name, trust_remote_code=trust_remote_code, **changes)
    except json.JSONDecodeError as error:
        raise NotFoundError(f"{file} is not JSON: {error}.") from error
    except (OSError, ValueError) as error:
        if isinstance(error, ValueError) and file.is_file():
            raise UnsupportedError(f"'{name}': {_first_line(error)}") from error
        raise no_model(name) from error
    if not trust_remote_code:
        require_plain_attention(name, config)
    return config


def read_config(name: str) -> tuple[PreTrainedConfig, type[PreTrainedModel]]:
    """The config and class of a model folder, a config.json or a hub name, ready to be built.

    Heads that transformers 4 removed are in `config.headcount` afterwards, like headcount's own.
    """
    try:
        config = load_config(name)
        kind = model_class(config)
        if getattr(config, "pruned_heads", None) and not getattr(config, "headcount", None):
            config.headcount = from_pruned_heads(kind, config)
    except HeadcountError:
        raise
    except Exception as error:
        raise _describes_none(name, error) from error
    return config, kind


def model_class(config: PreTrainedConfig, head: str | None = None) -> type[PreTrainedModel]:
    """The transformers class for this config: the one it was saved with, or one with `head`."""
    if head is not None:
        require("head", head, HEADS)
    for saved in getattr(config, "architectures", None) or []:
        if head is None and isinstance(getattr(transformers, saved, None), type):
            return getattr(transformers, saved)
    mapping: Any = getattr(transformers, HEADS[head or "base"])._model_mapping
    if type(config) not in mapping:
        what = f"{head} model" if head else "model"
        raise UnsupportedError(f"transformers has no {what} for '{config.model_type}'.")
    found = mapping[type(config)]
    return found[0] if isinstance(found, (tuple, list)) else found


def skeleton(config: PreTrainedConfig, kind: type[PreTrainedModel]) -> PreTrainedModel:
    """The model without any memory for its weights, with heads removed as the config says."""
    if getattr(config, "headcount", None) is None:
        return plain_skeleton(config, kind)
    bones: Any = require_instructions(config, kind, _saved_class(config, kind))
    bones.__class__ = pruned_class(kind)
    with torch.device("meta"):
        cut.cut_model(bones, bones.config.headcount)
    return bones


def _saved_class(
    config: PreTrainedConfig, otherwise: type[PreTrainedModel]
) -> type[PreTrainedModel]:
    try:
        return model_class(config)
    except UnsupportedError:
        return otherwise


def from_pruned_heads(kind: type[PreTrainedModel], config: PreTrainedConfig) -> dict[str, Any]:
    """Instructions for the heads that transformers 4 removed, listed in `config.pruned_heads`."""
    model = skeleton(config, kind)
    sites = sites_of(model)
    layout = layout_of(sites)
    if len(layout.stacks) != 1:
        raise UnsupportedError(
            f"config.pruned_heads of '{config.model_type}' does not say which of its "
            f"{len(layout.stacks)} stacks it means."
        )
    pruned: Mapping[str, list[int]] = getattr(config, "pruned_heads", {})
    try:
        gone = [
            Head(layout.stacks[0].name, int(layer), int(head))
            for layer, heads in pruned.items()
            for head in heads
        ]
    except (AttributeError, TypeError, ValueError) as error:
        raise NotFoundError(
            "config.pruned_heads, which says the heads that are gone, is damaged: it is not lists "
            "of heads by layer."
        ) from error
    config.pruned_heads = {}
    mask = Mask.full(layout).drop(gone)
    return instructions(model, sites, mask, watch_lending(model, sites), Way())


def _config_class(file: Path, model_type: str | None) -> Any:
    """AutoConfig, or the class itself when config.json forgot to write its model type."""
    try:
        written = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise NotFoundError(f"{file} cannot be read as JSON: {error}.") from error
    if not isinstance(written, dict) or "model_type" in written:
        return AutoConfig
    for saved in written.get("architectures") or []:
        kind = getattr(getattr(transformers, saved, None), "config_class", None)
        if kind is not None:
            return kind
    if model_type is not None and model_type in CONFIG_MAPPING:
        return CONFIG_MAPPING[model_type]
    raise UnsupportedError(
        f"{file} does not say which model_type it is for: write it there, or pass model_type=."
    )


def _other_sizes(name: str, wanted: Mapping[str, Any]) -> NotFoundError:
    if wanted:
        return NotFoundError(
            f"The weights in '{name}' have a head of another size than {', '.join(wanted)} asks "
            "for: pass new_head=True for a new one, to be trained."
        )
    return NotFoundError(
        f"The weights in '{name}' have other sizes than its config.json says; are both from the "
        "same folder?"
    )


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _describes_none(name: str, error: Exception) -> UnsupportedError:
    reason = " ".join(str(error).split()) or type(error).__name__
    return UnsupportedError(f"The config of '{name}' describes no model: {reason[:200]}")
