"""Export as a graph with batch and length left open: `torch-export`, and the trace for `onnx`.

The graph takes the probes' inputs by name and gives the model's answers by name (logits, hidden
states), without a key-value cache.
"""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headcount.base.errors import UnsupportedError
from headcount.base.files import patient
from headcount.exports.formats import ExportFormat, ReadBack
from headcount.exports.inputs import Feeds, Probes
from headcount.models.hooks import evaluating
from headcount.models.probe import TOLERANCE, relative_difference

AXES = {
    "input_ids": ("batch", "length"),
    "attention_mask": ("batch", "length"),
    "token_type_ids": ("batch", "length"),
    "position_ids": ("batch", "length"),
    "inputs_embeds": ("batch", "length"),
    "decoder_input_ids": ("batch", "decoder_length"),
    "decoder_attention_mask": ("batch", "decoder_length"),
    "decoder_inputs_embeds": ("batch", "decoder_length"),
    "encoder_hidden_states": ("batch", "encoder_length"),
    "encoder_attention_mask": ("batch", "encoder_length"),
    "input_values": ("batch", "samples"),
}
"""Which axes of an input may have any size; of other inputs (images, spectra) the first may."""

Answer = Callable[[Feeds], list[Tensor]]


class TorchExport(ExportFormat):
    """model.pt2, for `torch.export.load`."""

    library = "pytorch"
    imports = "import torch"
    loads = 'model = torch.export.load("path/to/this/folder/model.pt2").module()'
    graph = True

    def write(self, model: PreTrainedModel, folder: Path, probes: Probes) -> ReadBack:
        """The traced graph, saved as torch does."""
        file, inputs = folder / "model.pt2", probes.feeds[0]
        answers = named_answers(model, inputs)
        with refusing(model, "torch.export"), silenced(), evaluating(answers), torch.no_grad():
            # torch's own writer would end the process when the disk is full
            with patient(file) as opened:
                torch.export.save(traced(answers, inputs), opened)
            graph = torch.export.load(file).module()

            def answer(feeds: Feeds) -> list[Tensor]:
                return list(graph(**feeds).values())

            return verified(model, answers, answer, probes.feeds)


class NamedForward(nn.Module):
    """A model as a function from named tensors to named tensors."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model
        takes = inspect.signature(model.forward).parameters
        self.options = {"use_cache": False} if "use_cache" in takes else {}

    def forward(self, **inputs: Tensor) -> dict[str, Tensor]:
        """The floating-point tensors among the model's answers."""
        given = self.model(**inputs, **self.options)
        named = given.items() if isinstance(given, Mapping) else enumerate(given)
        return {
            str(name): value
            for name, value in named
            if isinstance(value, Tensor) and value.is_floating_point()
        }


def named_answers(model: PreTrainedModel, inputs: Feeds) -> nn.Module:
    """`NamedForward` whose forward names its arguments, as torch.export wants them."""
    names = list(inputs)

    def forward(self: Any, *args: Tensor, **kwargs: Tensor) -> dict[str, Tensor]:
        return NamedForward.forward(self, **dict(zip(names, args, strict=False)), **kwargs)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kind) for name in ("self", *names)]
    vars(forward)["__signature__"] = inspect.Signature(parameters)
    return type("Answers", (NamedForward,), {"forward": forward})(model)


def open_axes(name: str, tensor: Tensor) -> dict[int, str]:
    """{axis: its name} of the axes of an input that may have any size."""
    return {
        axis: word
        for axis, word in enumerate(AXES.get(name, (f"{name}_batch",)))
        # torch.export takes an axis of one for a constant
        if tensor.ndim > axis and tensor.shape[axis] > 1
    }


def traced(answers: nn.Module, inputs: Feeds) -> torch.export.ExportedProgram:
    """The graph of the answers to inputs like these, of any batch and length."""
    dynamic = torch.export.Dim.DYNAMIC
    shapes = {
        name: dict.fromkeys(open_axes(name, tensor), dynamic) for name, tensor in inputs.items()
    }
    program = torch.export.export(answers, (), inputs, dynamic_shapes=shapes)
    for part in program.graph_module.modules():
        for node in part.graph.nodes if isinstance(part, torch.fx.GraphModule) else ():
            # they would carry the paths of this machine into the file
            node.meta.pop("stack_trace", None)
    return program


def verified(
    model: PreTrainedModel, answers: nn.Module, answer: Answer, feeds: list[Feeds]
) -> ReadBack:
    """The largest difference between the model and the graph over inputs of several shapes."""
    worst = 0.0
    for inputs in (*feeds, _smaller(feeds[0])):
        expected = answers(**inputs)
        given = dict(zip(expected, answer(inputs), strict=True))
        pair = (without_padding(tensors, inputs) for tensors in (expected, given))
        worst = max(worst, relative_difference(*pair))
    if not worst <= max(1e-4, TOLERANCE.get(model.dtype, 1e-4)):
        raise UnsupportedError(f"its answers differ from the model's by {worst:.2g} of their size")
    return ReadBack(worst)


def without_padding(answers: dict[str, Tensor], feeds: Feeds) -> list[Tensor]:
    """The answers without those at padding, which mean nothing: no token is there to look at.

    Where a window of attention holds padding only, each kind of attention answers as it likes.
    """
    mask = feeds.get("attention_mask")
    both = "decoder_input_ids" in feeds
    return [
        value.masked_fill((mask == 0).view(*mask.shape, *[1] * (value.ndim - 2)), 0)
        if mask is not None
        and value.shape[:2] == mask.shape
        and (name.startswith("encoder") or not both)
        else value
        for name, value in answers.items()
    ]


def _smaller(inputs: Feeds) -> Feeds:
    """One example of the inputs, two tokens shorter where that leaves any."""
    # the last tokens stay: some classifiers read the end token's state
    smaller = {}
    for name, tensor in inputs.items():
        for axis in open_axes(name, tensor):
            size = 1 if axis == 0 else max(tensor.shape[axis] - 2, 1)
            start = 0 if axis == 0 else tensor.shape[axis] - size
            tensor = tensor.narrow(axis, start, size)
        smaller[name] = tensor.contiguous()
    return smaller


@contextmanager
def refusing(model: PreTrainedModel, to: str) -> Generator[None]:
    """Turn whatever goes wrong inside into one sentence that names the model."""
    try:
        yield
    except OSError:
        raise  # a full disk says nothing about the model
    except Exception as error:
        reason: BaseException = error
        while reason.__cause__ is not None:
            reason = reason.__cause__
        text = " ".join(str(reason).split())[:300].rstrip(".") or type(reason).__name__
        dtype = str(model.dtype).removeprefix("torch.")
        hint = "" if dtype == "float32" else f" It is {dtype}; float32 may work (--dtype float32)."
        raise UnsupportedError(
            f"headcount cannot export {type(model).__name__} ('{model.config.model_type}') to "
            f"{to}: {text}.{hint}"
        ) from error


@contextmanager
def silenced() -> Generator[None]:
    """No talk about torchvision or about torch's own deprecated calls inside."""
    logger = logging.getLogger("torch.onnx._internal.exporter._registration")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            # torch copies its own LeafSpec, which torch itself has deprecated
            warnings.filterwarnings("ignore", ".*LeafSpec.*", FutureWarning)
            yield
    finally:
        logger.setLevel(level)
