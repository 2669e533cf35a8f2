"""Which tensors of a batch a model takes."""

from __future__ import annotations

import inspect
from functools import lru_cache
from typing import Any

from torch import Tensor, nn

from headcount.errors import UnsupportedError


def model_inputs(model: nn.Module, batch: dict[str, Tensor], kind: str) -> dict[str, Any]:
    """The batch without labels and without what the model's forward does not name."""
    known = _parameters(type(model))
    inputs: dict[str, Any] = {
        name: value for name, value in batch.items() if name in known and name != "labels"
    }
    if kind == "translation":
        shift: Any = getattr(model, "prepare_decoder_input_ids_from_labels", None)
        if shift is None:
            raise UnsupportedError(f"{type(model).__name__} cannot be trained to translate.")
        inputs["decoder_input_ids"] = shift(labels=batch["labels"])
    if "use_cache" in known:
        inputs["use_cache"] = False
    return inputs


@lru_cache(maxsize=64)
def _parameters(kind: type[nn.Module]) -> frozenset[str]:
    return frozenset(inspect.signature(kind.forward).parameters)
