"""Is it really faster? A model dense, masked and with its heads removed, timed in one run.

    found = time_removed(model, {"50 %": (mask, hc.remove(model, mask))}, batch=8, length=128)
    found.rows[-1].ratio          # time / time of the dense model: median and 95 % interval
    found.rows[-1].ideal          # FLOPs / FLOPs of the dense model

Masking multiplies by zero and saves no time; removing does, at best down to the ideal.
"""

from __future__ import annotations

import inspect
import platform
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from headcount import html
from headcount.errors import UsageError
from headcount.heads import Layout, Mask
from headcount.models.cost import Cost, cost
from headcount.models.flops import inputs_at
from headcount.models.gates import gate
from headcount.models.timing import Estimate, Way, alternate, check_rounds, estimate, ratios
from headcount.text import line

DENSE = "dense"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One way of running the model, and what it took."""

    name: str
    kind: str
    """dense, masked, removed or onnx."""
    heads: int
    """Heads that do something."""
    sparsity: float
    seconds: Estimate
    """Of one forward pass of the whole batch."""
    ratio: Estimate
    """Time as a share of the dense model's."""
    ideal: float | None
    """FLOPs as a share of the dense model's, None when they cannot be counted."""
    parameters: int
    memory: int
    """Bytes of the weights, as a safetensors file has them."""

    @property
    def over_ideal(self) -> float | None:
        """Measured ratio / ideal ratio."""
        return self.ratio.median / self.ideal if self.ideal else None

    def to_json(self) -> dict[str, Any]:
        """A plain dict."""
        return {**asdict(self), "over_ideal": self.over_ideal}


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What was timed, and how."""

    model: str
    batch: int
    length: int
    reads: str
    """One example of the batch, in words."""
    rounds: int
    device: str
    threads: int
    share: float | None
    """The heads' share of the model's FLOPs."""
    ceiling: float | None
    """How many times faster without any head, at best."""
    rows: tuple[Row, ...]
    name: str | None = None
    """The folder, file or name of the dense model; None for one in memory."""
    pruned: str | None = None
    """The same of the pruned model, where one was given."""
    weights: str = "saved"
    """saved or random: both take the same time."""
    seed: int = 0
    notes: tuple[str, ...] = ()
    """What else is to be known."""

    def __repr__(self) -> str:
        times = ", ".join(f"{row.name} {row.ratio.median:.3f}" for row in self.rows[1:])
        about = f"{self.model}, {self.batch} x {self.reads} on {self.device}"
        brief = f"Bench({about}; {len(self.rows)} ways in {self.rounds} rounds)"
        return line(f"Bench({about}; {times})", brief)

    def _repr_html_(self) -> str:
        columns = ["", "heads", "time / dense", "low", "high", "ideal", "ms", "parameters"]
        rows = [
            (row.name, row.heads, *asdict(row.ratio).values(), row.ideal,
             1000 * row.seconds.median, row.parameters)
            for row in self.rows
        ]  # fmt: skip
        return html.table(columns, rows, title=repr(self))

    def to_json(self) -> dict[str, Any]:
        """What was asked and measured, as plain values."""
        return {
            "model": self.name,
            "pruned": self.pruned,
            "weights": self.weights,
            "seed": self.seed,
            "class": self.model,
            "batch": self.batch,
            "length": self.length if "tokens" in self.reads else None,
            "reads": self.reads,
            "rounds": self.rounds,
            "device": self.device,
            "threads": self.threads,
            "versions": {name: version(name) for name in ("torch", "transformers")},
            "machine": platform.machine(),
            "share_of_flops": self.share,
            "ceiling": self.ceiling,
            "timings": [row.to_json() for row in self.rows],
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class _Runner:
    kind: str
    mask: Mask
    model: PreTrainedModel
    way: Way


def time_removed(
    dense: PreTrainedModel,
    removed: Mapping[str, tuple[Mask, PreTrainedModel]],
    *,
    batch: int = 8,
    length: int | None = None,
    rounds: int = 15,
    onnx: bool = False,
    masked: bool = True,
    seed: int = 0,
    track: Callable[[Iterable[int]], Iterable[int]] = iter,
    clock: Callable[[], float] = time.perf_counter,
) -> Bench:
    """Time `dense`, the same with the smallest mask applied, and each of the `removed` models.

    `removed` has for each name the mask of the heads that were kept and the model without the
    others. With `onnx`, the dense model and the smallest run in onnxruntime as well; without
    `masked`, no mask is timed.
    """
    check_rounds(rounds)
    if batch < 1:
        raise UsageError(f"A batch is at least 1 example, not {batch}.")
    counted = cost(dense, length=length)
    inputs = inputs_for(dense, batch, counted.length, seed)
    _require_run(dense, inputs, f"{batch} x {counted.reads}")
    runners = _runners(dense, counted.layout, removed, inputs)
    runners = [runner for runner in runners if masked or runner.kind != "masked"]
    with tempfile.TemporaryDirectory() as folder:
        if onnx:
            smallest = min(runners, key=lambda runner: (len(runner.mask), runner.kind == "masked"))
            for number, runner in enumerate(dict.fromkeys([runners[0], smallest])):
                runners.append(_in_onnxruntime(runner, inputs, Path(folder) / str(number)))
        ways = [runner.way for runner in runners]
        times = alternate(ways, rounds=rounds, track=track, clock=clock)
    shares = ratios(times, DENSE)
    return Bench(
        model=counted.model,
        batch=batch,
        length=counted.length,
        reads=counted.reads,
        rounds=rounds,
        device=str(dense.device),
        threads=torch.get_num_threads(),
        share=counted.share,
        ceiling=counted.ceiling,
        rows=tuple(_row(runner, counted, times, shares) for runner in runners),
    )


def weight_bytes(model: PreTrainedModel) -> int:
    """Bytes of the weights in a safetensors file, without its header: tied weights count once."""
    tensors = {
        tensor.data_ptr(): tensor for tensor in model.state_dict().values() if tensor.numel()
    }
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())


def inputs_for(model: PreTrainedModel, batch: int, length: int, seed: int) -> dict[str, Any]:
    """Made-up rows for one forward pass, in which nothing is kept for a next token."""
    inputs: dict[str, Any] = dict(inputs_at(model, batch=batch, length=length, seed=seed))
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
    dense: PreTrainedModel,
    layout: Layout,
    removed: Mapping[str, tuple[Mask, PreTrainedModel]],
    inputs: dict[str, Any],
) -> list[_Runner]:
    def runner(kind: str, name: str, mask: Mask, model: PreTrainedModel) -> _Runner:
        # gated only while it runs: the hooks must not slow the dense model down
        around = (lambda: gate(model, mask)) if kind == "masked" else nullcontext
        way = Way(
            name=f"{kind} {name}".rstrip(),
            run=lambda: model(**inputs),
            around=around,
            wait=torch.cuda.synchronize if model.device.type == "cuda" else None,
        )
        return _Runner(kind=kind, mask=mask, model=model, way=way)

    found = [runner(DENSE, "", Mask.full(layout), dense)]
    if removed:
        name, (mask, _) = min(removed.items(), key=lambda item: len(item[1][0]))
        found.append(runner("masked", name, mask, dense))
    return found + [runner("removed", name, *pair) for name, pair in removed.items()]


def _in_onnxruntime(runner: _Runner, inputs: Mapping[str, Any], folder: Path) -> _Runner:
    from headcount.models.export import export

    export(runner.model, "onnx", folder)
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(
        folder / "model.onnx", options, providers=["CPUExecutionProvider"]
    )
    given = dict(inputs)
    if "input_ids" in given:  # the graph asks for segments; the model takes them to be 0
        given.setdefault("token_type_ids", torch.zeros_like(given["input_ids"]))
    feeds = {put.name: given[put.name].cpu().numpy() for put in session.get_inputs()}
    way = Way(name=f"onnx {runner.way.name}", run=lambda: session.run(None, feeds))
    return _Runner(kind="onnx", mask=runner.mask, model=runner.model, way=way)


def _row(
    runner: _Runner,
    counted: Cost,
    times: Mapping[str, list[float]],
    shares: Mapping[str, Estimate],
) -> Row:
    name = runner.way.name
    return Row(
        name=name,
        kind=runner.kind,
        heads=len(runner.mask),
        sparsity=runner.mask.sparsity,
        seconds=estimate(times[name]),
        ratio=shares[name],
        # masked heads are computed all the same
        ideal=1.0 if runner.kind == "masked" else counted.ratio(runner.mask),
        parameters=sum(parameter.numel() for parameter in runner.model.parameters()),
        memory=weight_bytes(runner.model),
    )
