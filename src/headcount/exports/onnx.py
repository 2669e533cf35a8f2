"""Export as `model.onnx`: the traced graph turned into ONNX and run in onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headcount.exports.formats import ExportFormat, ReadBack
from headcount.exports.graph import (
    named_answers,
    open_axes,
    refusing,
    silenced,
    traced,
    verified,
    without_padding,
)
from headcount.exports.inputs import Feeds, Probes
from headcount.models.capture import eager
from headcount.models.hooks import evaluating
from headcount.models.probe import TOLERANCE, relative_difference


class Onnx(ExportFormat):
    """model.onnx, for onnxruntime; weights of 2 GB and more lie beside it."""

    extra = "onnx"
    library = "onnx"
    imports = "import onnxruntime"
    loads = 'session = onnxruntime.InferenceSession("path/to/this/folder/model.onnx")'
    calls = "answers = session.run(None, inputs)"
    tensors = "np"
    selects = "inputs = {put.name: inputs[put.name] for put in session.get_inputs()}"
    graph = True

    def write(self, model: PreTrainedModel, folder: Path, probes: Probes) -> ReadBack:
        """The traced graph, turned into ONNX and run in onnxruntime."""
        import onnxruntime

        file, inputs = folder / "model.onnx", probes.feeds[0]
        answers = named_answers(model, inputs)
        with refusing(model, "ONNX"), silenced(), evaluating(answers), torch.no_grad():
            expected = answers(**inputs)
            names, program = list(expected), _traced_plainly(model, answers, inputs, expected)
            onnx = torch.onnx.export(program, dynamo=True, verbose=False, output_names=names)
            assert onnx is not None  # it is where dynamo is asked for
            onnx.rename_axes(_axis_names(onnx, inputs))
            if model.dtype != torch.bfloat16:
                compute_wide(onnx.model.graph)
            onnx.save(file)
            session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])

            def answer(given: Feeds) -> list[Tensor]:
                wanted = {put.name: given[put.name].numpy() for put in session.get_inputs()}
                return [torch.from_numpy(array) for array in session.run(None, wanted)]

            return verified(model, answers, answer, probes.feeds)


def _traced_plainly(
    model: PreTrainedModel, answers: nn.Module, inputs: Feeds, expected: dict[str, Tensor]
) -> torch.export.ExportedProgram:
    """The graph with attention written out: torch cannot turn every fused attention into ONNX."""
    with eager(model):
        pair = (without_padding(tensors, inputs) for tensors in (expected, answers(**inputs)))
        difference = relative_difference(*pair)
        if difference <= TOLERANCE.get(model.dtype, 1e-5):
            return traced(answers, inputs)
    # transformers computes Falcon's position slopes differently in eager and in fused attention
    return traced(answers, inputs)


def _axis_names(onnx: torch.onnx.ONNXProgram, inputs: Feeds) -> dict[Any, str]:
    """{symbol of an axis in the graph: a word for it}, the first input's word where they meet."""
    words: dict[object, str] = {}
    for put in onnx.model.graph.inputs:
        assert put.name is not None
        assert put.shape is not None
        for axis, word in open_axes(put.name, inputs[put.name]).items():
            words.setdefault(str(put.shape[axis]), word)
    return words


def compute_wide(graph: Any) -> None:
    """Let what a float32 model does in bfloat16 run in float32, each result rounded as before.

    Falcon computes its position slopes in bfloat16, in which onnxruntime cannot compute on CPUs.
    """
    from onnxscript import ir

    narrow, wide = ir.DataType.BFLOAT16, ir.DataType.FLOAT
    for node in list(graph):
        if node.op_type in ("Cast", "CastLike", "Constant"):
            continue
        for index, value in enumerate(node.inputs):
            if value is not None and value.dtype == narrow:
                cast = ir.node("Cast", [value], {"to": wide})
                node.prepend(cast)
                node.replace_input_with(index, cast.outputs[0])
        for value in node.outputs:
            if value.dtype == narrow:
                uses = list(value.uses())
                value.dtype = wide
                cast = ir.node("Cast", [value], {"to": narrow})
                cast.outputs[0].dtype = narrow
                node.append(cast)
                for user, index in uses:
                    user.replace_input_with(index, cast.outputs[0])
