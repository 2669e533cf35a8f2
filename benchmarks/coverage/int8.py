"""Scores and sizes of a full and a pruned model in float32 and in int8, in torch and onnxruntime.

    python benchmarks/coverage/int8.py MODEL PRUNED… --task similarity --data STS-B \\
        --columns sentence1 sentence2 --label score --limit 500

int8 is that of torch (`quantize_dynamic` of every `Linear`: eight bits a weight, and inputs rounded
row by row when the model runs) and that of onnxruntime (`quantize_dynamic` of the exported graph).
The tokenizer is MODEL's. Every row of the table is scored on the same examples.
"""

from __future__ import annotations

import argparse
import copy
import logging
import os
import sys
import tempfile
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"

import numpy as np
import onnxruntime
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic

import headcount as hc


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+")
    parser.add_argument("--task", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--columns", nargs="+")
    parser.add_argument("--label")
    parser.add_argument("--limit", type=int, default=500)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    columns, label = options.columns, options.label
    task = hc.task(options.data, kind=options.task, columns=columns, label=label)
    scoring = hc.Scoring(limit=options.limit)
    print("model  heads  weights  bytes  score")
    for name in options.models:
        model: Any = hc.load(name)
        heads = len(hc.layout(model))
        for weights, form, size in forms(model):
            result = hc.evaluate(form, task, scoring=scoring)
            print(
                f"{Path(name).name}  {heads}  {weights}  {size:,}  {result.scores[0]}", flush=True
            )
    return 0


def forms(model: Any) -> Any:
    """(weights, the model in this form, bytes of the file it is)."""
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        yield "torch float32", model, saved(model, folder)
        eight = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)
        yield "torch int8", eight, saved(eight, folder)
        hc.export(model, "onnx", folder / "onnx")
        file, small = folder / "onnx" / "model.onnx", folder / "int8.onnx"
        yield "ONNX float32", in_onnxruntime(model, file), file.stat().st_size
        quantize_dynamic(file, small, weight_type=QuantType.QInt8)
        yield "ONNX int8", in_onnxruntime(model, small), small.stat().st_size


def saved(model: Any, folder: Path) -> int:
    """Bytes of the weights as torch saves them."""
    torch.save(model.state_dict(), folder / "weights.pt")
    return (folder / "weights.pt").stat().st_size


def in_onnxruntime(model: Any, file: Path) -> Any:
    """The model with a forward pass that onnxruntime computes."""
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]

    def forward(**inputs: Any) -> Any:
        given = {put.name: np.asarray(inputs[put.name]) for put in session.get_inputs()}
        answers = map(torch.from_numpy, session.run(None, given))
        return SimpleNamespace(**dict(zip(names, answers, strict=True)))

    model = copy.deepcopy(model)
    model.forward = forward
    return model


if __name__ == "__main__":
    sys.exit(main())
