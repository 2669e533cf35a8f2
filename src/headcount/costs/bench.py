"""Is it really faster? A model dense, masked and with its heads removed, timed in one run.

    found = time_removed(model, {"50 %": (mask, hc.remove(model, mask))}, batch=8, length=128)
    found.rows[-1].speedup        # how many times as fast as dense: median and 95 % interval
    found.rows[-1].ideal          # FLOPs / FLOPs of the dense model, which bounds it

Masking multiplies by zero and saves no time; removing does, at best down to the ideal.
"""

from __future__ import annotations

import inspect
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from headcount.base.errors import UsageError
from headcount.costs.cost import Cost, cost
from headcount.costs.flops import inputs_at
from headcount.costs.shapes import shapes_of
from headcount.costs.timed import BenchResult, BenchRow, Shape
from headcount.costs.timing import Estimate, TimedVariant, alternate, check_rounds, ratios, seconds
from headcount.heads import Layout, Mask
from headcount.models.gates import gate

DENSE = "dense"


@dataclass(frozen=True, kw_only=True, eq=False)
class _Runner:
    """A way of running a model, whatever the inputs are."""

    kind: str
    name: str
    mask: Mask
    model: PreTrainedModel
    way: Callable[[dict[str, Any]], TimedVariant]
    """What is timed on these inputs."""


def time_removed(
    dense: PreTrainedModel,
    removed: Mapping[str, tuple[Mask, PreTrainedModel]],
    *,
    batch: int | Sequence[int] = 8,
    length: int | Sequence[int] | None = None,
    rounds: int = 15,
    timing_seconds: float = 0.0,
    onnx: bool = False,
    masked: bool = True,
    seed: int = 0,
    track: Callable[[Iterable[int]], Iterable[int]] = iter,
    clock: Callable[[], float] = time.perf_counter,
) -> BenchResult:
    """Time `dense`, the same with the smallest mask applied, and each of the `removed` models.

    `removed` has for each name the mask of the heads that were kept and the model without the
    others. Of several batches and lengths every combination is timed: for `rounds` rounds, and for
    more until all intervals are within ± 10 % or `timing_seconds` have passed. With `onnx`, the
    dense model and the smallest run in onnxruntime as well; without `masked`, no mask is timed.
    """
    check_rounds(rounds)
    sizes = shapes_of(batch, length)
    counts = {tokens: cost(dense, length=tokens) for _, tokens in sizes}
    first = next(iter(counts.values()))
    runners = _runners(dense, first.layout, removed)
    runners = [runner for runner in runners if masked or runner.kind != "masked"]
    with tempfile.TemporaryDirectory() as folder:
        if onnx:
            smallest = min(runners, key=lambda runner: (len(runner.mask), runner.kind == "masked"))
            for number, runner in enumerate(dict.fromkeys([runners[0], smallest])):
                runners.append(_in_onnxruntime(runner, Path(folder) / str(number)))
        shapes = []
        for examples, tokens in sizes:
            counted = counts[tokens]
            inputs = inputs_for(dense, examples, counted.length, seed)
            _require_run(dense, inputs, f"{examples} x {counted.reads}")
            times = alternate(
                [runner.way(inputs) for runner in runners], rounds=rounds,
                timing_seconds=timing_seconds, track=track, clock=clock,
            )  # fmt: skip
            shapes.append(_shape(examples, counted, runners, times))
    return BenchResult(
        model=first.model, device=str(dense.device), threads=torch.get_num_threads(),
        shapes=tuple(shapes),
    )  # fmt: skip


def _shape(
    batch: int, counted: Cost, runners: Sequence[_Runner], times: Mapping[str, list[float]]
) -> Shape:
    shares, took = ratios(times, DENSE), seconds(times, DENSE)
    return Shape(
        batch=batch,
        length=counted.length,
        reads=counted.reads,
        rounds=len(times[DENSE]),
        share=counted.share,
        ceiling=counted.ceiling,
        rows=tuple(_row(runner, counted, took, shares) for runner in runners),
    )


def weight_bytes(model: PreTrainedModel) -> int:
    """Bytes of the weights in a safetensors file, without its header: tied weights count once."""
    tensors = {
        tensor.data_ptr(): tensor for tensor in model.state_dict().values() if tensor.numel()
    }
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())


def inputs_for(model: PreTrainedModel, batch: int, length: int, seed: int) -> dict[str, object]:
    """Made-up rows for one forward pass, in which nothing is kept for a next token."""
    inputs: dict[str, object] = dict(inputs_at(model, batch=batch, length=length, seed=seed))
    if "use_cache" in inspect.signature(model.forward).parameters:
        inputs["use_cache"] = False
    return inputs


def _require_run(model: PreTrainedModel, inputs: dict[str, Any], what: str) -> None:
    try:
        with torch.inference_mode():
            model(**inputs)
    except (IndexError, RuntimeError, TypeError, ValueError) as error:
        if "memory" in str(error).lower():
            raise
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise UsageError(f"{type(model).__name__} does not run on {what}: {reason}") from error


def _runners(
    dense: PreTrainedModel, layout: Layout, removed: Mapping[str, tuple[Mask, PreTrainedModel]]
) -> list[_Runner]:
    def runner(kind: str, name: str, mask: Mask, model: PreTrainedModel) -> _Runner:
        # gated only while it runs: the hooks must not slow the dense model down
        around = (lambda: gate(model, mask)) if kind == "masked" else nullcontext
        full = f"{kind} {name}".rstrip()

        def way(inputs: dict[str, Any]) -> TimedVariant:
            wait = torch.cuda.synchronize if model.device.type == "cuda" else None
            return TimedVariant(name=full, run=lambda: model(**inputs), around=around, wait=wait)

        return _Runner(kind=kind, name=full, mask=mask, model=model, way=way)

    runners = [runner(DENSE, "", Mask.full(layout), dense)]
    if removed:
        name, (mask, _) = min(removed.items(), key=lambda item: len(item[1][0]))
        runners.append(runner("masked", name, mask, dense))
    return runners + [runner("removed", name, *pair) for name, pair in removed.items()]


def _in_onnxruntime(runner: _Runner, folder: Path) -> _Runner:
    from headcount.exports.export import export

    export(runner.model, "onnx", folder)
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(
        folder / "model.onnx", options, providers=["CPUExecutionProvider"]
    )
    name = f"onnx {runner.name}"

    def way(inputs: dict[str, Any]) -> TimedVariant:
        given = dict(inputs)
        if "input_ids" in given:  # the graph asks for segments; the model takes them to be 0
            given.setdefault("token_type_ids", torch.zeros_like(given["input_ids"]))
        feeds = {put.name: given[put.name].cpu().numpy() for put in session.get_inputs()}
        return TimedVariant(name=name, run=lambda: session.run(None, feeds))

    return _Runner(kind="onnx", name=name, mask=runner.mask, model=runner.model, way=way)


def _row(
    runner: _Runner, counted: Cost, took: Mapping[str, Estimate], shares: Mapping[str, Estimate]
) -> BenchRow:
    return BenchRow(
        name=runner.name,
        kind=runner.kind,
        heads=len(runner.mask),
        sparsity=runner.mask.sparsity,
        seconds=took[runner.name],
        ratio=shares[runner.name],
        # masked heads are computed all the same
        ideal=1.0 if runner.kind == "masked" else counted.ratio(runner.mask),
        parameters=sum(parameter.numel() for parameter in runner.model.parameters()),
        memory=weight_bytes(runner.model),
    )
