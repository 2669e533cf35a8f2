"""What a bench measured: a row for every way of running and shape of the inputs."""

from __future__ import annotations

import platform
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Literal

from headcount.base import html
from headcount.base.text import line
from headcount.costs.timing import PRECISION, Estimate, is_precise

Phase = Literal["forward", "prefill", "decode"]
"""A forward pass; one that fills a cache; one token after it for every example."""


@dataclass(frozen=True, kw_only=True)
class BenchRow:
    """One way of running the model on inputs of one shape, and what it took."""

    name: str
    kind: str
    """dense, masked, removed or onnx."""
    heads: int
    """Heads that do something."""
    sparsity: float
    seconds: Estimate
    """Of one forward pass of the whole batch: the dense model's times `ratio`."""
    ratio: Estimate
    """Time as a share of the dense model's in the same round."""
    ideal: float | None
    """FLOPs as a share of the dense model's, None when they cannot be counted; of `decode` the
    bytes that are read."""
    parameters: int
    memory: int
    """Bytes of the weights, as a safetensors file has them."""
    cache: int | None = None
    """Bytes of all keys and values after a prefill."""
    tokens: int | None = None
    """Tokens of a prefill, or of one step of all examples."""

    @property
    def tokens_per_second(self) -> Estimate | None:
        """Of all examples together; None of a forward pass."""
        return self.seconds.turned().times(self.tokens) if self.tokens else None

    @property
    def speedup(self) -> Estimate:
        """How many times as fast as the dense model: `ratio` turned over."""
        return self.ratio.turned()

    @property
    def bound(self) -> float | None:
        """How many times as fast it could be at best, by FLOPs; None when nothing bounds it."""
        return 1 / self.ideal if self.ideal else None

    @property
    def over_ideal(self) -> float | None:
        """Measured ratio / ideal ratio."""
        return self.ratio.median / self.ideal if self.ideal else None

    def to_json(self) -> dict[str, object]:
        """A plain dict."""
        speed = {"speedup": asdict(self.speedup), "bound": self.bound}
        plain: dict[str, object] = {**asdict(self), "over_ideal": self.over_ideal, **speed}
        rate = self.tokens_per_second
        del plain["tokens"]
        if rate is None:
            del plain["cache"]
            return plain
        return plain | {"tokens_per_second": asdict(rate)}


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Inputs of one shape, and what every way took for them."""

    batch: int
    length: int
    reads: str
    """One example of the batch, in words."""
    rounds: int
    share: float | None
    """The heads' share of the model's FLOPs."""
    ceiling: float | None
    """How many times as fast without any head, at best."""
    rows: tuple[BenchRow, ...]
    phase: Phase = "forward"

    @property
    def precise(self) -> bool:
        """Whether every interval is within ± 10 % of its median."""
        return all(is_precise(row.ratio) for row in self.rows)

    def __str__(self) -> str:
        after = "" if self.phase == "forward" else f", {self.phase}"
        return f"{self.batch} × {self.reads}{after}"

    def to_json(self) -> dict[str, object]:
        """How it was timed; the rows are those of the bench."""
        phase = {} if self.phase == "forward" else {"phase": self.phase}
        shares = {"share_of_flops": self.share}
        if self.phase == "decode":
            shares = {"share_of_flops": None, "share_of_bytes": self.share}
        return {
            **phase, **shares,
            "batch": self.batch, "length": self.length if "tokens" in self.reads else None,
            "reads": self.reads, "rounds": self.rounds,
            "ceiling": self.ceiling, "precise": self.precise, "precision": PRECISION,
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class BenchResult:
    """What was timed, and how."""

    model: str
    device: str
    threads: int
    shapes: tuple[Shape, ...]
    name: str | None = None
    """The folder, file or name of the dense model; None for one in memory."""
    pruned: str | None = None
    """The same of the pruned model, where one was given."""
    weights: str = "saved"
    """saved or random: both take the same time."""
    seed: int = 0
    notes: tuple[str, ...] = ()
    """What else is to be known."""

    @property
    def rows(self) -> tuple[BenchRow, ...]:
        """The rows of all shapes."""
        return tuple(row for shape in self.shapes for row in shape.rows)

    def __repr__(self) -> str:
        first = self.shapes[0]
        about = f"{self.model}, {first.batch} x {first.reads} on {self.device}"
        times = ", ".join(f"{row.name} {row.speedup.median:.3f} ×" for row in first.rows[1:])
        brief = f"{len(first.rows)} ways in {first.rounds} rounds"
        more = f"; {len(self.shapes)} shapes" if len(self.shapes) > 1 else ""
        return line(f"BenchResult({about}; {times}{more})", f"BenchResult({about}; {brief}{more})")

    def _repr_html_(self) -> str:
        columns = ["", "shape", "heads", "× as fast", "low", "high", "at best", "ms", "parameters"]
        rows = [
            (row.name, str(shape), row.heads, *asdict(row.speedup).values(), row.bound,
             1000 * row.seconds.median, row.parameters)
            for shape in self.shapes for row in shape.rows
        ]  # fmt: skip
        return html.table(columns, rows, title=repr(self))

    def to_json(self) -> dict[str, object]:
        """What was asked and measured, as plain values; of several shapes the first is on top."""
        shapes = [shape.to_json() for shape in self.shapes]
        timings = [
            row.to_json()
            | {name: shape[name] for name in ("batch", "length", "phase") if name in shape}
            for shape, timed in zip(shapes, self.shapes, strict=True) for row in timed.rows
        ]  # fmt: skip
        return {
            "model": self.name,
            "pruned": self.pruned,
            "weights": self.weights,
            "seed": self.seed,
            "class": self.model,
            **{name: shapes[0][name] for name in ("batch", "length", "reads", "rounds")},
            "device": self.device,
            "threads": self.threads,
            "versions": {name: version(name) for name in ("torch", "transformers")},
            "machine": platform.machine(),
            **{name: shapes[0][name] for name in ("share_of_flops", "ceiling")},
            "shapes": shapes,
            "timings": timings,
        }
