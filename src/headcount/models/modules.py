"""Any `nn.Module` with heads missing, saved and loaded into a fresh one.

small = hc.remove(model, mask, probe={"x": images})
hc.save(small, "small")
again = hc.load_into(timm.create_model("vit_tiny_patch16_224"), "small")
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, TypeVar

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import PreTrainedModel

from headcount.base.errors import NotFoundError, UsageError, in_words
from headcount.base.files import parse_json
from headcount.models import cut
from headcount.models.door import require_model, require_numbers
from headcount.models.find import unwrap
from headcount.models.packed import Unpacked, unpack_in_place
from headcount.models.pruned import whole_folder
from headcount.models.trusted import refuse_other_heads

Model = TypeVar("Model", bound=nn.Module)
WEIGHTS, LAYOUT = "model.safetensors", "headcount.json"


def save(model: nn.Module, folder: str | os.PathLike[str]) -> Path:
    """Write a module's weights and which heads it has left; `load_into` reads them."""
    model = require_numbers(require_model(unwrap(model), "hc.save"), "hc.save")
    path = Path(folder)
    if isinstance(model, PreTrainedModel):
        model.save_pretrained(path)
        return path
    unpacked = [name for name, part in model.named_modules() if isinstance(part, Unpacked)]
    written = {"unpacked": bool(unpacked), "headcount": getattr(model, "headcount", None)}
    with whole_folder(path) as partial:
        weights = {name: value.contiguous().clone() for name, value in model.state_dict().items()}
        save_file(weights, partial / WEIGHTS)
        (partial / LAYOUT).write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")
    return path


def load_into(module: Model, folder: str | os.PathLike[str]) -> Model:
    """`module`, built anew with all its heads, after the heads that are gone and the weights."""
    require_model(module, "hc.load_into")
    path = Path(folder)
    for name in (WEIGHTS, LAYOUT):
        if not (path / name).is_file():
            raise NotFoundError(f"'{folder}' is no folder that hc.save wrote: it has no {name}.")
    written: Any = parse_json((path / LAYOUT).read_text(encoding="utf-8"), f"{path / LAYOUT}")
    if not isinstance(written, dict) or set(written) != {"unpacked", "headcount"}:
        raise NotFoundError(f"{path / LAYOUT} does not say which heads are left.")
    if cut.sites_in(cut.settings_of(module)):
        raise UsageError("hc.load_into takes a module with all its heads; this one lost some.")
    if written["unpacked"]:
        unpack_in_place(module)
    if written["headcount"] is not None:
        refuse_other_heads(module, written["headcount"])
        module.headcount = written["headcount"]
        cut.cut_model(module, cut.sites_in(module))
        cut.add_biases(module, cut.biases_in(module))
        cut.add_paths(module, cut.paths_in(module))
    try:
        module.load_state_dict(load_file(path / WEIGHTS))
    except (SafetensorError, RuntimeError) as error:
        raise NotFoundError(
            f"The weights in '{folder}' do not fit this {type(module).__name__}: {in_words(error)}"
        ) from error
    return module
