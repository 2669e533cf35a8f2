"""How far two models' attention and hidden states are apart on the same inputs.

Why Can You Lay Off Heads?, §5, Fig. 4. What is averaged over what: see `__init__.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from headcount.base.errors import UsageError
from headcount.base.text import line
from headcount.changes.batch import compare_batch
from headcount.changes.pair import open_pair
from headcount.heads import Layout, Scores, Stack
from headcount.likeness.inputs import open_stream
from headcount.likeness.running import RunningMoments
from headcount.models.find import layout as layout_of_model
from headcount.models.hooks import evaluating

COLUMNS = {"layer": "mean", "l2": "hidden", "relative": "relative"}
"""What is kept by layer, and what it is called in a `LayerDrift`."""
NOTHING = "There are no inputs to compare the two models on."


@dataclass(frozen=True, kw_only=True)
class LayerDrift:
    """One layer: attention drift over its heads, and hidden drift where the layer has its own."""

    stack: str
    layer: int
    mean: float
    """JS divergence, mean over heads; NaN in a layer without heads."""
    mean_stderr: float
    max: float
    """JS divergence of the head that drifts most."""
    max_stderr: float
    hidden: float = float("nan")
    """L2 between what the layer puts out in the two models; NaN for cross-attention."""
    hidden_stderr: float = float("nan")
    relative: float = float("nan")
    """The same relative to the length of the first model's vectors."""
    relative_stderr: float = float("nan")


@dataclass(frozen=True, kw_only=True)
class Drift:
    """Drift of heads and layers, with standard errors over inputs (NaN for a single one)."""

    attention: Scores
    """Jensen–Shannon divergence in bits."""
    stderr: Scores
    layers: tuple[LayerDrift, ...]
    n: int
    """Inputs."""

    def __repr__(self) -> str:
        return line(f"Drift({self.attention!r}; {self.n} inputs)")

    def to_json(self) -> dict[str, object]:
        """A plain dict."""
        return {
            "measure": "Jensen-Shannon divergence, base 2; L2 of layer outputs",
            "n": self.n,
            "attention": self.attention.by_layer(),
            "stderr": self.stderr.by_layer(),
            "layers": [asdict(layer) for layer in self.layers],
        }


def drift(
    first: nn.Module,
    second: nn.Module,
    inputs: Any,
    *,
    tokenizer: Any = None,
    limit: int | None = None,
    max_length: int = 128,
    seed: int = 0,
    progress: Callable[[int, int | None], Any] | None = None,
) -> Drift:
    """Attention and hidden drift from `first` to `second`; inputs as in `hc.redundancy`."""
    left, right = open_pair(first, second)
    layout = layout_of_model(left)
    if hasattr(inputs, "__len__") and not len(inputs):
        raise UsageError(NOTHING)
    runs = sum(h * u for s in layout.stacks for h, u in zip(s.heads, s.uses, strict=True))
    makers = [m for m in (first, second) if hasattr(m, "prepare_decoder_input_ids_from_labels")]
    maker = (makers or [first])[0]  # the one that can make a decoder's tokens from texts
    settings = {"tokenizer": tokenizer, "limit": limit, "max_length": max_length, "seed": seed}
    stream = open_stream(maker, inputs, heads=runs, **settings)
    running = RunningMoments()
    with evaluating(left), evaluating(right), torch.no_grad():
        for batch in (batch for chunk in stream.chunks for batch in chunk):
            for row in compare_batch(left, right, batch, layout):
                running.add(row)
            if progress is not None:
                progress(running.count, stream.total)
    if not running.count:
        raise UsageError(NOTHING)
    return _summary(running, layout)


def _summary(running: RunningMoments, layout: Layout) -> Drift:
    missed = [stack.name for stack in layout.stacks if (stack.name, "js") not in running.means]
    if missed:
        raise UsageError(
            f"The inputs do not reach the {missed[0]} heads: pass batches that have what they read."
        )
    layers = [row for stack in layout.stacks for row in _layers(running, stack)]
    values = np.concatenate([running.means[stack.name, "js"] for stack in layout.stacks])
    errors = np.concatenate([running.error((stack.name, "js")) for stack in layout.stacks])
    return Drift(
        attention=Scores(layout, tuple(values.tolist())),
        stderr=Scores(layout, tuple(errors.tolist())),
        layers=tuple(layers),
        n=running.count,
    )


def _layers(running: RunningMoments, stack: Stack) -> Iterator[LayerDrift]:
    mean = {name: running.means[stack.name, name] for name in ("js", *COLUMNS)}
    error = {name: running.error((stack.name, name)) for name in ("js", *COLUMNS)}
    _require_numbers(stack.name, mean["js"])
    start = 0
    for layer, count in enumerate(stack.heads):
        most = start + int(mean["js"][start : start + count].argmax()) if count else None
        start += count
        by_layer = {}
        for name, column in COLUMNS.items():
            by_layer[column] = float(mean[name][layer])
            by_layer[f"{column}_stderr"] = float(error[name][layer])
        yield LayerDrift(
            stack=stack.name,
            layer=layer,
            max=float("nan") if most is None else float(mean["js"][most]),
            max_stderr=float("nan") if most is None else float(error["js"][most]),
            **by_layer,
        )


def _require_numbers(stack: str, js: NDArray[np.float64]) -> None:
    bad = np.flatnonzero(~np.isfinite(js))
    if len(bad):
        raise UsageError(
            f"The attention of {len(bad)} {stack} heads is not a number (NaN): the weights may be "
            "too large for their precision."
        )
