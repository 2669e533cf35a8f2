"""One vector of a text from the vectors of its tokens, as sentence-transformers does it.

A folder of sentence-transformers lists what is behind the transformer in `modules.json`: Pooling,
then Dense and Normalize layers. A bare model has `config.sentence_pooling`, or the mean of its
tokens. No code of a folder is run, and no pickle is read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from headcount.base.errors import NotFoundError, UnsupportedError, UsageError
from headcount.base.files import read_json
from headcount.base.names import require
from headcount.base.text import short
from headcount.models.find import unwrap
from headcount.models.model_options import POOLINGS
from headcount.models.origin import folder_of

FILE = "modules.json"
MODES = {**POOLINGS, "mean_sqrt_len_tokens": "mean_sqrt_len_tokens"}
LEGACY = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""What older folders say instead of `pooling_mode`, in the order in which vectors are joined."""
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "Identity": lambda x: x,
    "Tanh": torch.tanh,
    "ReLU": torch.relu,
    "GELU": functional.gelu,
    "SiLU": functional.silu,
    "Sigmoid": torch.sigmoid,
}
Step = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class SentenceModules:
    """What turns (row, token, width) into (row, size)."""

    modes: tuple[str, ...]
    """Poolings by the names of sentence-transformers; the vectors of several are joined."""
    steps: tuple[Step, ...] = ()
    """Dense and Normalize, in order."""

    def embed(self, hidden: Tensor, mask: Tensor | None) -> Tensor:
        """(row, size) the embeddings; `mask` has 1 for every token that is no padding."""
        wide = hidden.to(torch.promote_types(hidden.dtype, torch.float32))
        mask = hidden.new_ones(hidden.shape[:2]) if mask is None else mask
        vectors = torch.cat([pool(wide, mask, mode) for mode in self.modes], dim=-1)
        for step in self.steps:
            vectors = step(vectors)
        return vectors


def pool(hidden: Tensor, mask: Tensor, mode: str) -> Tensor:
    """(row, width) one vector of the tokens that count.

    >>> tokens, mask = torch.tensor([[[1.0], [4.0], [9.0]]]), torch.tensor([[1, 1, 0]])
    >>> [pool(tokens, mask, mode).item() for mode in ("cls", "lasttoken", "max", "weightedmean")]
    [1.0, 4.0, 4.0, 3.0]
    """
    keep = mask.bool()
    rows = torch.arange(len(hidden), device=hidden.device)
    first = keep.int().argmax(1)
    if mode == "cls":
        return hidden[rows, first]
    if mode == "lasttoken":
        return hidden[rows, keep.shape[1] - 1 - keep.int().flip(1).argmax(1)]
    if mode == "max":
        return hidden.masked_fill(~keep[..., None], -torch.inf).amax(1)
    weights = keep.to(hidden.dtype)
    if mode == "weightedmean":
        places = torch.arange(1, keep.shape[1] + 1, device=hidden.device)
        weights = weights * (places - first[:, None])
    count = weights.sum(1, keepdim=True).clamp_min(1e-9)
    sums = (hidden * weights[..., None]).sum(1)
    return sums / (count.sqrt() if mode == "mean_sqrt_len_tokens" else count)


def sentence_modules(model: nn.Module) -> SentenceModules:
    """What makes embeddings of this model's tokens: its folder's modules, or a pooling."""
    bare: Any = unwrap(model)
    if (file := modules_file(bare)) is not None:
        return _read(file, file.stat().st_mtime_ns)
    return SentenceModules((POOLINGS[getattr(bare.config, "sentence_pooling", None) or "mean"],))


def modules_file(model: PreTrainedModel) -> Path | None:
    """The list of modules beside the weights; None for a bare model."""
    folder = folder_of(model.name_or_path or "")
    return folder / FILE if folder is not None and (folder / FILE).is_file() else None


def set_pooling(model: PreTrainedModel, pooling: str | None) -> None:
    """Pool the tokens of a bare model so; a folder with modules has said it already."""
    if pooling is None:
        return
    require("pooling", pooling, POOLINGS)
    if (file := modules_file(model)) is not None:
        written = _read(file, file.stat().st_mtime_ns).modes
        if written != (POOLINGS[pooling],):
            raise UsageError(
                f"--pooling {pooling} is for bare models: {file} says {', '.join(written)}."
            )
    else:
        model.config.sentence_pooling = pooling


@lru_cache(maxsize=8)
def _read(file: Path, changed: int) -> SentenceModules:
    """The same as before where the list was not `changed` since."""
    return read_modules(file)


def read_modules(file: Path) -> SentenceModules:
    """The modules of a folder, by their list."""
    listed = read_json(file, "list of modules")
    if not isinstance(listed, list) or not all(isinstance(part, dict) for part in listed):
        raise UsageError(f"{file} is no list of modules.")
    modes: tuple[str, ...] = ()
    steps: list[Step] = []
    for number, part in enumerate(listed):
        name = str(part.get("type", "")).rpartition(".")[2]
        path = str(part.get("path", ""))
        folder = file.parent / path
        if "\0" in path or not folder.resolve().is_relative_to(file.parent.resolve()):
            raise UsageError(f"{file} names a folder outside of its own: {short(path)}.")
        if number == 0 and name == "Transformer":
            continue
        if name == "Pooling" and not modes and not steps:
            modes = _modes(folder / "config.json")
        elif name == "Dense" and modes:
            steps.append(_dense(folder))
        elif name == "Normalize" and modes:
            steps.append(_normalize)
        else:
            raise UnsupportedError(
                f"{file} has the module {short(name)} at {number}, and headcount reads a "
                "Transformer, Pooling, and then Dense and Normalize."
            )
    if not modes:
        raise UnsupportedError(f"{file} has no Pooling: it makes no embedding of a text.")
    return SentenceModules(modes, tuple(steps))


def _modes(file: Path) -> tuple[str, ...]:
    config = _object(file)
    given = config.get("pooling_mode")
    if given is None:
        given = [mode for key, mode in LEGACY.items() if config.get(key)] or "mean"
    modes = tuple(given) if isinstance(given, list) else (given,)
    if wrong := [mode for mode in modes if mode not in MODES.values()]:
        raise UnsupportedError(
            f"{file} pools by {short(wrong[0])}, and headcount knows {', '.join(MODES.values())}."
        )
    return modes


def _dense(folder: Path) -> Step:
    config, file = _object(folder / "config.json"), folder / "model.safetensors"
    name = str(config.get("activation_function", "Tanh")).rpartition(".")[2]
    if name not in ACTIVATIONS:
        raise UnsupportedError(
            f"{folder}/config.json has the activation {short(name)}, and headcount knows "
            f"{', '.join(ACTIVATIONS)}."
        )
    if not file.is_file():
        raise NotFoundError(f"There is no {file}: pickled weights of a Dense module are not read.")
    try:
        weights = load_file(file)
        weight, bias = weights["linear.weight"], weights.get("linear.bias")
    except (SafetensorError, KeyError, OSError) as error:
        raise NotFoundError(f"{file} has no weights of a Dense module.") from error

    def step(vectors: Tensor) -> Tensor:
        if vectors.shape[1] != weight.shape[1]:
            raise UsageError(
                f"{file} takes vectors of {weight.shape[1]} numbers, not {vectors.shape[1]}."
            )
        moved = [None if part is None else part.to(vectors) for part in (weight, bias)]
        return ACTIVATIONS[name](functional.linear(vectors, *moved))  # pyright: ignore[reportArgumentType]

    return step


def _normalize(vectors: Tensor) -> Tensor:
    return functional.normalize(vectors, dim=-1)


def _object(file: Path) -> Mapping[str, Any]:
    data = read_json(file, "config of a module")
    if not isinstance(data, dict):
        raise UsageError(f"{file} is no config of a module: {short(data)} is no object.")
    return data


def write_modules(model: PreTrainedModel, folder: Path) -> None:
    """Make a folder that has a pooling in its config one of sentence-transformers."""
    pooling = getattr(model.config, "sentence_pooling", None)
    if pooling is None or (folder / FILE).exists():
        return
    parts = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    listed = [
        {"idx": at, "name": str(at), "path": path, "type": f"sentence_transformers.models.{name}"}
        for at, (path, name) in enumerate(parts.items())
    ]
    config = {key: mode == POOLINGS[pooling] for key, mode in LEGACY.items()}
    size = model.config.get_text_config().hidden_size
    for name, content in (
        (FILE, listed),
        ("1_Pooling/config.json", {"word_embedding_dimension": size, **config}),
    ):
        target = folder / name
        target.parent.mkdir(exist_ok=True)
        target.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
