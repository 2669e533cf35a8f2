"""What one head costs: the bytes of its weights, and the time it adds to a forward pass.

Time is measured by removal: half of the heads (half of the key-value heads, where they are shared)
go from all layers of one shape at once, both models run in turn, and the difference of their times
is shared among the heads that went. Layers of one stack, head count and width are one shape.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch
from transformers import PreTrainedModel

from headcount.costs.bench import inputs_for
from headcount.costs.cost import cost
from headcount.costs.flops import fitting_length
from headcount.costs.timing import TimedVariant, alternate, estimate
from headcount.heads import Head, Layout, Mask
from headcount.models.find import sites_of
from headcount.models.linear import has_bias
from headcount.models.remove import remove
from headcount.models.sites import Site

Shape = tuple[str, int, int, int]
"""stack, heads, key-value heads, width of a head"""


@dataclass(frozen=True, eq=False)
class HeadTimes:
    """Milliseconds of every head, in the order of the layout."""

    median: np.ndarray
    stderr: np.ndarray
    """Of the mean over rounds."""
    low: np.ndarray
    """Lower end of the median's 95 % interval."""
    high: np.ndarray
    reads: str
    """What a forward pass read, in words."""


def head_bytes(model: PreTrainedModel, layout: Layout) -> np.ndarray:
    """(head,) bytes of the weights that go when all heads like it go, shared evenly.

    The output projection's bias belongs to no head. Keys and values that several heads share count
    in parts.
    """
    sizes: dict[tuple[str, int], float] = {}
    for part in cost(model).sites:
        site, out = part.site, model.get_submodule(part.site.out)
        bias: torch.Tensor | None = out.bias if has_bias(out) else None  # pyright: ignore[reportAssignmentType]
        stays = 0 if bias is None else bias.numel() * model.dtype.itemsize
        sizes[site.stack, site.layer] = (part.memory - stays) / max(site.heads, 1)
    return np.array([sizes.get((head.stack, head.layer), math.nan) for head in layout])


def head_times(
    model: PreTrainedModel,
    layout: Layout,
    *,
    batch: int = 8,
    length: int | None = None,
    rounds: int = 15,
    seed: int = 0,
    track: Callable[[Iterable[int]], Iterable[int]] = iter,
    clock: Callable[[], float] = time.perf_counter,
) -> HeadTimes:
    """Milliseconds that every head adds to a forward pass of `batch` rows of `length` tokens."""
    length = fitting_length(model.config, length)
    inputs = inputs_for(model, batch, length, seed)
    shapes: dict[Shape, list[Head]] = {}
    for site in sites_of(model):
        if site.heads:
            shapes.setdefault(_shape(site), []).extend(_gone(site))
    wait = torch.cuda.synchronize if model.device.type == "cuda" else None
    models = {"": model}
    for shape, heads in shapes.items():
        models["/".join(map(str, shape))] = remove(model, Mask.full(layout).drop(heads))
    ways = [
        TimedVariant(name=name, run=lambda variant=variant: variant(**inputs), wait=wait)
        for name, variant in models.items()
    ]
    times = alternate(ways, rounds=rounds, track=track, clock=clock)
    by_shape = {}
    for shape, heads in shapes.items():
        less = times["/".join(map(str, shape))]
        spared = [
            1000 * (all_ - few) / len(heads) for all_, few in zip(times[""], less, strict=True)
        ]
        error = float(np.std(spared, ddof=1)) / math.sqrt(len(spared))
        saving = estimate(spared)
        by_shape[shape] = (saving.median, error, saving.low, saving.high)
    shape_of = {(site.stack, site.layer): _shape(site) for site in sites_of(model)}
    table = np.array([by_shape[shape_of[head.stack, head.layer]] for head in layout]).reshape(-1, 4)
    return HeadTimes(*table.T, reads=f"{batch} x {length} tokens")


def _shape(site: Site) -> Shape:
    return site.stack, site.heads, site.groups, site.head_dim


def _gone(site: Site) -> list[Head]:
    """The heads of the second half of a layer's key-value heads; the only one's, where it is."""
    size = site.heads // site.groups
    first = size * (site.groups // 2)
    return [Head(site.stack, site.layer, index) for index in range(first, site.heads)]
