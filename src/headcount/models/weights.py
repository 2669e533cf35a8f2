"""Is what a checkpoint holds what its model needs? transformers draws at random what is missing.

Before it is loaded: its files are safe to read, not quantised, and not far smaller than the model.

Weights that are missing are refused by name, and so are weights of the model itself that it has no
place for (a config.json with fewer layers). Legitimate are: tied weights, constants that the class
computes, a new task head where one is to be trained, and a bare encoder without a pooler.
"""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import psutil
import torch
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel

from headcount.base.errors import NotFoundError, UnsupportedError, UsageError
from headcount.base.files import read_json
from headcount.base.text import short

talk = logging.getLogger("headcount")
CONSTANTS = re.compile(
    r"(^|\.)(position_ids|token_type_ids|inv_freq|relative_position_index|num_batches_tracked"
    r"|version|_float_tensor|masked_bias|causal_mask|(cross)?attn(\.attention)?\.bias"
    r"|crossattention\.bias|attention\.bias)$"
)
"""Buffers that older versions of transformers saved and newer ones compute."""
SHOWN = 4
"""Weights that a message names."""
LARGER, SLACK = 16, 2**26
"""Numbers of a model to a byte of its files, and how many more: a new head, tables of positions."""
_notes: set[str] = set()


def require_plain_weights(name: str, config: PreTrainedConfig) -> None:
    """Refuse a model whose weights are quantised: heads are rows of plain ones."""
    packed = getattr(config, "quantization_config", None)
    if packed is not None:
        method = packed.get("quant_method") if isinstance(packed, dict) else None
        raise UnsupportedError(
            f"The weights in '{name}' are quantised (quantization_config in its config.json"
            f"{f', {short(method)}' if method else ''}), and headcount works on plain ones: take "
            "the model it was made from, or save it dequantised."
        )


def require_fitting(name: str, bones: PreTrainedModel) -> None:
    """Refuse a config of a far larger model than the folder has weights for, before it is built."""
    folder = Path(name)
    if not folder.is_dir():
        return
    files = (path for path in folder.iterdir() if path.suffix in (".safetensors", ".bin"))
    room = sum(path.stat().st_size for path in files if path.is_file())
    needed = sum(tensor.numel() for tensor in (*bones.parameters(), *bones.buffers()))
    if needed > LARGER * room + SLACK:
        raise NotFoundError(
            f"The config of '{name}' describes a model of {needed:,} weights, and its files have "
            f"{room:,} bytes: take the config.json that was saved with them."
        )


def require_memory(what: str, needed: int, advice: str) -> None:
    """Refuse, before it starts, what needs more memory than is free."""
    free = psutil.virtual_memory().available
    if needed > free:
        raise UsageError(
            f"{what} take {needed / 2**30:.1f} GiB of memory, and {free / 2**30:.1f} GiB are free: "
            f"{advice}."
        )


def require_room(name: str, bones: PreTrainedModel, dtype: object) -> None:
    """Refuse weights that do not fit into memory in this dtype, before they are read."""
    dtype = getattr(bones.config, "dtype", None) if dtype in (None, "auto") else dtype
    if isinstance(dtype, str):
        dtype = getattr(torch, dtype, None)
    kind = dtype if isinstance(dtype, torch.dtype) else torch.float32
    needed = kind.itemsize * sum(parameter.numel() for parameter in bones.parameters())
    short = str(kind).removeprefix("torch.")
    narrower = "" if kind.itemsize <= 2 else "pass --dtype bfloat16 (dtype='bfloat16'), or "
    require_memory(f"The weights of '{name}' in {short}", needed, f"{narrower}free some")


def require_own_weights(name: str, allow_pickle: bool) -> None:
    """Refuse a folder whose weights are pickled, are not there, or lie somewhere else."""
    folder = Path(name)
    if not folder.is_dir():
        return
    if not allow_pickle and not any(path.is_file() for path in folder.glob("*.safetensors")):
        if lost := next(folder.glob("*.safetensors"), None):
            raise NotFoundError(f"'{name}' has no weights: {lost.name} is a link to nothing.")
        if any(folder.glob("*.bin")):
            raise UsageError(
                f"'{name}' has only pickled weights (.bin), which can run code when they are "
                "loaded. Pass --allow-pickle (allow_pickle=True) if you trust them."
            )
        if not any(folder.glob("*.safetensors.index.json")):
            raise NotFoundError(f"'{name}' has a config but no weights (no *.safetensors).")
    for index in sorted(folder.glob("*.index.json")):
        whole = folder / index.name.removesuffix(".index.json")
        if whole.is_file() or (whole.suffix == ".bin" and not allow_pickle):
            continue  # transformers does not read it
        entries = read_json(index, "index of weights")
        files = entries.get("weight_map") if isinstance(entries, dict) else None
        if not isinstance(files, dict):
            raise UsageError(f"{index} is no index of weights: it has no weight_map.")
        _require_files(index, set(map(str, files.values())), allow_pickle)


def _require_files(index: Path, files: set[str], allow_pickle: bool) -> None:
    for file in sorted(files):
        if Path(file).name != file or "\\" in file:
            raise UsageError(
                f"{index} names weights outside its folder ({short(file)}), which are not read."
            )
        if not allow_pickle and not file.endswith(".safetensors"):
            raise UsageError(f"{index} names {short(file)}, which is not a .safetensors file.")
        if not (index.parent / file).is_file():
            raise NotFoundError(f"{index} names {short(file)}, which is not there.")


def require_weights(
    name: str, model: PreTrainedModel, report: Mapping[str, Any], *, new_head: bool
) -> None:
    """Refuse a checkpoint that lacks weights or has others than the model, after it was loaded.

    `report` is transformers' loading info. With `new_head` what stands on top of the model (and
    the pooler below it) may be new, which is noted; a bare encoder loses a pooler that it lacks.
    """
    kind = type(model).__name__
    for key, *_ in report["mismatched_keys"]:
        if not is_head(key, model):
            raise NotFoundError(f"The weights in '{name}' do not fit: {key} has another shape.")
    missing = {key for key in report["missing_keys"] if not _is_constant(model, key)}
    if drop_pooler(model, missing):
        note(
            f"'{name}' holds no pooler: {kind} is loaded without it ({_listed(missing)} are not "
            "in the file)."
        )
        missing = set()
    lost = [key for key in missing if not (new_head and is_head(key, model))]
    if lost:
        raise NotFoundError(
            f"The weights in '{name}' lack {_listed(lost)}, which {kind} needs: "
            + _advice(model, lost)
        )
    unknown = [key for key in report["unexpected_keys"] if not CONSTANTS.search(key)]
    foreign = [key for key in unknown if _is_inside(key, model)]
    if foreign:
        raise NotFoundError(
            f"The weights in '{name}' have {_listed(foreign)}, which {kind} as its config.json "
            "describes it has no place for: take the config.json that was saved with them."
        )
    new = [*missing, *(key for key, *_ in report["mismatched_keys"])]
    parts = [f"new weights, to be trained, {_listed(new)}"] if new else []
    parts += [f"weights that {kind} does not use, {_listed(unknown)}"] if unknown else []
    if parts:
        note(f"'{name}' has {'; and '.join(parts)}.")


def drop_pooler(model: PreTrainedModel, missing: Collection[str]) -> bool:
    """Take the pooler off a bare encoder where exactly its weights are missing.

    Only of a class that is also built without one; what remains answers as before, without a
    pooled output of random numbers.
    """
    kind = getattr(type(model), "base_class", type(model))
    pooler = getattr(model, "pooler", None)
    if (
        not missing  # Swin's pooler has no weights
        or model.base_model is not model
        or "add_pooling_layer" not in inspect.signature(kind.__init__).parameters
        or not isinstance(pooler, nn.Module)
        or set(missing) != {f"pooler.{name}" for name in pooler.state_dict()}
    ):
        return False
    setattr(model, "pooler", None)  # noqa: B010 (no class declares it)
    return True


def adopt_pooler(built: PreTrainedModel, model: PreTrainedModel) -> PreTrainedModel:
    """`built`, built from the config of `model`, without a pooler where `model` has none."""
    if getattr(model, "pooler", built) is None and getattr(built, "pooler", None) is not None:
        setattr(built, "pooler", None)  # noqa: B010
    return built


def is_head(key: str, model: PreTrainedModel) -> bool:
    """Whether a weight stands on top of the model: a task head, or the pooler that feeds one."""
    inside = model.base_model is model or key.startswith(model.base_model_prefix + ".")
    bare = key.removeprefix(model.base_model_prefix + ".")
    return not inside or bare.startswith("pooler.")


def note(text: str) -> None:
    """Say on stderr what must not be missed, once in a process."""
    if text not in _notes:
        _notes.add(text)
        talk.warning("%s", text)


def _is_inside(key: str, model: PreTrainedModel) -> bool:
    """Whether a weight belongs to a part that the model itself has, but for the pooler."""
    part = key.removeprefix(model.base_model_prefix + ".").partition(".")[0]
    return part != "pooler" and part in dict(model.base_model.named_children())


def _is_constant(model: PreTrainedModel, key: str) -> bool:
    """Whether the class computes it (sinusoids, counters), so that no file needs to hold it."""
    owner = model.get_submodule(key.rpartition(".")[0])
    return "Sinusoidal" in type(owner).__name__ or not (
        model.get_parameter_or_buffer(key).is_floating_point()
    )


def _advice(model: PreTrainedModel, lost: Iterable[str]) -> str:
    if all(is_head(key, model) for key in lost):
        return (
            "take the file that was saved with this config.json, or train a new head (headcount "
            "train; in Python, new_head=True)."
        )
    return "take the file that was saved with this config.json."


def _listed(keys: Iterable[str]) -> str:
    first = sorted(keys)
    shown = ", ".join(first[:SHOWN])
    return shown if len(first) <= SHOWN else f"{shown} and {len(first) - SHOWN} more"
