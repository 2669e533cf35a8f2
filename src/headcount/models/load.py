"""Load any transformers model, with its heads removed where headcount or transformers 4 did so."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import torch
from transformers import PreTrainedConfig, PreTrainedModel

from headcount.base.errors import (
    HeadcountError,
    MissingExtraError,
    NotFoundError,
    UnsupportedError,
    in_words,
)
from headcount.base.files import as_path
from headcount.heads import Head, Mask
from headcount.models import cut
from headcount.models.bars import bars_on_terminals_only
from headcount.models.config import describes_none, load_config, model_class
from headcount.models.find import layout_of, sites_of
from headcount.models.foreign import heads_gone
from headcount.models.instructions import CutWay, instructions
from headcount.models.origin import leave_code
from headcount.models.pruned import pruned_class
from headcount.models.seen import watch_lending
from headcount.models.shipped import locate
from headcount.models.trusted import plain_skeleton, require_instructions
from headcount.models.weights import (
    require_fitting,
    require_own_weights,
    require_plain_weights,
    require_room,
    require_weights,
)


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

    `head` puts another head on it (HEADS in config.py); the default is what the checkpoint was
    saved with. Weights that the checkpoint lacks are refused by name; with `new_head` those of the
    head may be new, drawn at random, to be trained. `model_type` helps where an old config.json
    does not name its own. `options` go to `from_pretrained` (dtype, device_map, num_labels,
    attn_implementation…). No code of the folder is run, and none goes into what is saved;
    `trust_remote_code=True` runs the code of its config, for folders and repositories you trust.
    """
    as_path(name, "model")
    given, name = str(name), locate(name)
    wanted = {k: options.pop(k) for k in ("num_labels", "id2label", "label2id") if k in options}
    config = load_config(name, trust_remote_code=trust_remote_code, model_type=model_type, **wanted)
    kind = model_class(config, head)
    require_own_weights(name, allow_pickle)
    require_plain_weights(name, config)
    leave_code(name, config)
    if getattr(config, "headcount", None) is not None:
        require_fitting(name, require_instructions(config, kind, _saved_class(config, kind)))
        kind = pruned_class(kind)
    else:
        bones = plain_skeleton(config, kind)
        require_fitting(name, bones)
        if options.get("device_map") in (None, "cpu"):
            require_room(name, bones, options.get("dtype"))
        if apart := _of_others(kind, config):
            config.headcount = apart
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
    except Exception as error:
        raise _cannot_load(name, kind, wanted, error) from error
    model, report = loaded
    require_weights(given, model, report, new_head=new_head)
    return model.eval()


def read_config(name: str) -> tuple[PreTrainedConfig, type[PreTrainedModel]]:
    """The config and class of a model folder, a config.json or a hub name, ready to be built.

    Heads that transformers 4 removed are in `config.headcount` afterwards, like headcount's own.
    """
    try:
        config = load_config(name)
        kind = model_class(config)
        if not getattr(config, "headcount", None) and (apart := _of_others(kind, config)):
            config.headcount = apart
    except HeadcountError:
        raise
    except Exception as error:
        raise describes_none(name, error) from error
    return config, kind


def skeleton(config: PreTrainedConfig, kind: type[PreTrainedModel]) -> PreTrainedModel:
    """The model without any memory for its weights, with heads removed as the config says."""
    if getattr(config, "headcount", None) is None:
        return plain_skeleton(config, kind)
    bones = require_instructions(config, kind, _saved_class(config, kind))
    bones.__class__ = pruned_class(kind)
    with torch.device("meta"):
        cut.cut_model(bones, cut.sites_in(bones.config))
        cut.add_parts(bones, bones.config)
    return bones


def _saved_class(
    config: PreTrainedConfig, otherwise: type[PreTrainedModel]
) -> type[PreTrainedModel]:
    try:
        return model_class(config)
    except UnsupportedError:
        return otherwise


def _of_others(kind: type[PreTrainedModel], config: PreTrainedConfig) -> dict[str, Any] | None:
    """Instructions for heads that others say are gone; None where all are there."""
    if getattr(config, "pruned_heads", None):
        return from_pruned_heads(kind, config)
    layers = vars(config).pop("_layers_apart", None)
    if not layers:
        return None
    model = plain_skeleton(config, kind)
    sites = sites_of(model)
    gone = heads_gone(config, sites, layers)
    mask = Mask.full(layout_of(sites)).drop(gone)
    return instructions(model, sites, mask, watch_lending(model, sites), CutWay()) if gone else None


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
    return instructions(model, sites, mask, watch_lending(model, sites), CutWay())


def _cannot_load(
    name: str, kind: type[PreTrainedModel], wanted: Mapping[str, object], error: Exception
) -> Exception:
    """What transformers raised while it loaded a model, as a refusal."""
    if isinstance(error, HeadcountError | MemoryError | torch.OutOfMemoryError):
        return error
    if isinstance(error, OSError):
        return NotFoundError(f"Cannot load '{name}': {_first_line(error)}")
    if type(error).__name__ == "SafetensorError":
        return NotFoundError(f"The weights in '{name}' cannot be read: {_first_line(error)}.")
    if isinstance(error, RuntimeError) and "mismatched" in str(error):
        return _other_sizes(name, wanted)
    if isinstance(error, ImportError):
        return MissingExtraError(f"Cannot load '{name}': {_first_line(error)}")
    return UnsupportedError(f"Cannot load '{name}' as {kind.__name__}: {in_words(error)}")


def _other_sizes(name: str, wanted: Mapping[str, object]) -> NotFoundError:
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
