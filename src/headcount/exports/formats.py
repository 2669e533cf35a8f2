"""The formats of `headcount export`, by name; listing them imports nothing.

A format is a class in a file of its own and one line here: how to write a model and read it back,
and how to load what was written, for its card.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from headcount.base.errors import UsageError
from headcount.base.registry import Registry

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from headcount.exports.inputs import Probes


@dataclass(frozen=True)
class ReadBack:
    """How what was written answers, compared with the model."""

    difference: float | None
    """Largest difference, relative to the largest value; None where it could not be run."""
    details: str = ""
    """What else was seen, for the card."""


class ExportFormat(ABC):
    """One way to write a model."""

    extra: ClassVar[str | None] = None
    """What of `headcount ls extras` must be installed."""
    library: ClassVar[str] = "transformers"
    """What loads it, in the words of the hub."""
    imports: ClassVar[str] = "from transformers import {auto}"
    loads: ClassVar[str]
    """Python that loads it; `{auto}` is the transformers class that does."""
    calls: ClassVar[str] = "answers = model(**inputs)"
    tensors: ClassVar[str] = "pt"
    """What the tokenizer is to return."""
    selects: ClassVar[str] = "inputs = {name: inputs[name] for name in {names}}"
    """Python that picks what the model takes of what the tokenizer gives."""
    graph: ClassVar[bool] = False
    """Whether it takes exactly the inputs that it was traced with."""
    zeros: ClassVar[bool] = False
    """Whether the removed heads are in the file as zeros."""
    number_types: ClassVar[tuple[str, ...]] = ()
    """How the weights may be stored, the default first; none where they stay as they are."""

    def __init__(self, weights: str | None = None) -> None:
        if weights is not None and weights not in self.number_types:
            known = ", ".join(self.number_types) or "none: it keeps the model's (see --dtype)"
            raise UsageError(f"This format has no weights '{weights}'; known are {known}.")
        self.weights = weights or next(iter(self.number_types), "")

    @abstractmethod
    def write(self, model: PreTrainedModel, folder: Path, probes: Probes) -> ReadBack:
        """Write the model, read it back, and answer the probes with both.

        A difference that is too large is refused.
        """


FORMATS = Registry("export format")
for _name, _where, _summary in (
    (
        "zeroed",
        "headcount.exports.checkpoint:Zeroed",
        "full size, the removed heads' weights zero: loads with plain transformers",
    ),
    (
        "standalone",
        "headcount.exports.checkpoint:Standalone",
        "small, with its own modelling file: loads with trust_remote_code=True",
    ),
    (
        "stock",
        "headcount.exports.stock:Stock",
        "small, as many heads in every layer: loads with plain transformers and its servers",
    ),
    (
        "vllm",
        "headcount.exports.vllm:Vllm",
        "standalone with the numbers that vLLM reads, and a head of zeros in an emptied layer",
    ),
    ("onnx", "headcount.exports.onnx:Onnx", "model.onnx for onnxruntime, any batch and length"),
    (
        "onnx-cache",
        "headcount.exports.onnx_cache:OnnxCache",
        "model.onnx of a decoder with past keys and values, for generating token by token",
    ),
    (
        "torch-export",
        "headcount.exports.graph:TorchExport",
        "model.pt2 for torch.export.load, any batch and length",
    ),
    (
        "gguf",
        "headcount.exports.gguf:Gguf",
        "model.gguf for llama.cpp: Llama, Mistral, Qwen2 and their like",
    ),
):
    FORMATS.add(_name, _where, _summary)
