"""A model timed dense, masked and pruned."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from headcount.base.json_object import JsonObject
from headcount.base.options import by_field, defined, to_plain
from headcount.costs.shapes import SEVERAL, check_rounds, check_timing, shapes_of, unlisted
from headcount.runs.contents import FILE
from headcount.runs.kinds.kind import RunContext, RunKind, RunOutput
from headcount.runs.results import Result

if TYPE_CHECKING:
    from headcount.runs.run import Run


@dataclass(frozen=True, kw_only=True)
class TimeEstimate(JsonObject):
    """A median over paired rounds, and its 95 % interval."""

    median: float
    """The median."""
    low: float
    """The lower end."""
    high: float
    """The upper end."""


@dataclass(frozen=True, kw_only=True)
class Timing(JsonObject):
    """One way of running the model on inputs of one shape."""

    name: str
    """The way, in words."""
    kind: str
    """dense, masked, removed or onnx."""
    heads: int
    """Heads that do something."""
    sparsity: float
    """The share of heads that are masked or removed."""
    batch: int | None = None
    """Examples in a forward pass."""
    length: int | None = None
    """Tokens of each; null for other inputs."""
    speedup: TimeEstimate | None = None
    """How many times as fast as the dense model."""
    bound: float | None = None
    """How many times as fast the FLOPs allow."""
    seconds: TimeEstimate
    """Of a forward pass; of decode, one token of every example."""
    ratio: TimeEstimate
    """The time as a share of the dense model's in the same round."""
    ideal: float | None
    """FLOPs as a share of the dense model's, of decode the bytes read; null if not counted."""
    over_ideal: float | None
    """The measured share over the ideal one."""
    parameters: int
    """Parameters."""
    memory: int
    """Bytes of the weights."""
    phase: str | None = None
    """prefill or decode, with generate."""
    cache: int | None = None
    """Bytes of the keys and values of all examples."""
    tokens_per_second: TimeEstimate | None = None
    """Of all examples together."""


@dataclass(frozen=True, kw_only=True)
class TimedShape(JsonObject):
    """How one shape of inputs was timed."""

    batch: int
    """Examples in a forward pass."""
    length: int | None
    """Tokens of each; null for other inputs."""
    reads: str
    """One example, in words."""
    rounds: int
    """Paired rounds."""
    share_of_flops: float | None
    """The heads' share of the FLOPs."""
    ceiling: float | None
    """How many times as fast without any head, at best."""
    precise: bool
    """Whether all intervals are within the precision."""
    precision: float
    """The half-width of an interval that is precise, as a share."""
    phase: str | None = None
    """prefill or decode, with generate."""
    share_of_bytes: float | None = None
    """Of decode, the heads' share of the bytes read for a token, in weights and cache."""


@dataclass(frozen=True, kw_only=True)
class BenchSummary(Result):
    """A model timed; of several shapes of inputs, the first is on top."""

    model: str | None
    """The dense model; null for one in memory."""
    pruned: str | None
    """The pruned model, where one was given."""
    weights: str
    """saved or random."""
    seed: int
    """Of the inputs, and of random weights and masks."""
    class_: str
    """The class of the model."""
    batch: int
    """Examples in a forward pass."""
    length: int | None
    """Tokens of each; null for other inputs."""
    reads: str
    """One example, in words."""
    rounds: int
    """Paired rounds."""
    threads: int
    """Threads."""
    machine: str
    """The processor."""
    share_of_flops: float | None
    """The heads' share of the FLOPs."""
    ceiling: float | None
    """How many times as fast without any head, at best."""
    shapes: tuple[TimedShape, ...] = ()
    """How each shape was timed."""
    timings: tuple[Timing, ...]
    """Each way of running, for each shape."""


@dataclass(frozen=True, kw_only=True)
class BenchOptions(RunKind):
    """Time one forward pass: dense, masked, with heads removed, and in onnxruntime."""

    result: ClassVar = BenchSummary

    pruned: str | None = field(default=None, metadata=FILE)
    """The same model with heads removed."""
    ratio: tuple[float, ...] | None = None
    """Shares of the heads to remove when no pruned model is given: 0.5 0.75 0.9."""
    batch: int | tuple[int, ...] = field(default=8, metadata=SEVERAL)
    """Examples in a forward pass; each of several numbers is timed."""
    length: int | tuple[int, ...] | None = field(default=None, metadata=SEVERAL)
    """Tokens of each example; each of several numbers is timed; by default 128, or what fits."""
    repeats: int = 15
    """Minimum number of rounds, 6 or more."""
    timing_seconds: float = 30.0
    """Add rounds until the intervals are within ± 10 %, for at most this many seconds."""
    onnx: bool | None = None
    """Time onnxruntime, too; by default when it is installed and the device is the CPU."""
    generate: bool = False
    """Time a decoder that writes: a prefill of length tokens, then tokens with its cache."""
    from_config: bool = False
    """Use random weights even if the model has its own: the time is the same."""

    def __post_init__(self) -> None:
        shapes_of(self.batch, self.length)
        check_timing(self.timing_seconds)
        check_rounds(self.repeats)
        for name in ("batch", "length"):
            object.__setattr__(self, name, unlisted(getattr(self, name)))

    def to_plain(self) -> dict[str, Any]:
        """Plain data without the usual values of later options: the key of earlier runs stays."""
        plain = by_field(self)
        for name in ("timing_seconds", "generate"):
            if plain[name] == getattr(type(self), name):
                del plain[name]
        return plain

    def execute(self, run: Run, context: RunContext) -> RunOutput:
        """Time it; `context.report` wraps the rounds. Nothing is written but the record."""
        from headcount.costs.speed import bench
        from headcount.models import fingerprint
        from headcount.runs.opening import name_of

        options: dict[str, Any] = {name: getattr(self, name) for name in by_field(self)}
        result = bench(
            name_of(run),
            **options,
            allow_pickle=run.model_options.allow_pickle,
            device=run.model_options.device,
            seed=run.seed,
            track=context.report or iter,
        )
        identity = {
            "model": run.model,
            "device": run.model_options.device,
            "versions": fingerprint.versions(),
            "kind": run.kind,
            "options": to_plain(self),
            "seed": run.seed,
        }
        summary = BenchSummary.from_json(defined(result.to_json()))
        return RunOutput(result=summary, identity=identity, rows={}, value=result)
