"""Where projections write into a model's stream, seen in one run on a small input.

A linear layer inside a block writes into the stream where what it gives, o, is added to something
that was computed before it: a later module is given r + o, or a module around it gives that, and r
went into an earlier module of the same block. So the residual of every architecture is found
without knowing it, and with it the second matrix of a feed-forward part: the linear layer beside
the attention whose output is added.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from headcount.models.hooks import hooked
from headcount.models.layers import block_of
from headcount.models.probe import find_probe, run
from headcount.models.sites import Site

SOON = 16
"""Modules that run behind a projection before something is given the sum."""


@dataclass(frozen=True)
class Addition:
    """A linear layer whose output is added to the stream."""

    out: str
    residual: str
    """Path of the module whose input is what it is added to; it has run before."""
    site: Site
    """The attention layer: its own, or the last one that ran in the block before."""

    @property
    def feed_forward(self) -> bool:
        """Whether it is no output projection of attention."""
        return self.out != self.site.out


@dataclass(frozen=True)
class _Event:
    """A module that has run: what went in first, and what came out first."""

    path: str
    given: Tensor | None
    gave: Tensor | None


def find_additions(model: nn.Module, sites: list[Site]) -> list[Addition]:
    """Every such layer in a block with attention, in the order they run; those that are not seen to
    write into the stream are left out, as in blocks that compute attention and feed-forward side by
    side.
    """
    events: list[_Event] = []

    def note(path: str) -> Callable[[], object]:
        def take(_: nn.Module, args: tuple[object, ...], output: object) -> None:
            gave = output[0] if isinstance(output, tuple) and output else output
            events.append(_Event(path, _copy(args[0] if args else None), _copy(gave)))

        return lambda: model.get_submodule(path).register_forward_hook(take)

    with hooked([note(path) for path, _ in model.named_modules() if path]):
        inputs = find_probe(model)
        events.clear()  # tries of a probe
        run(model, inputs)
    blocks = {path: block_of(model, path) for path in {event.path for event in events}}
    kinds = {path: isinstance(model.get_submodule(path), nn.Linear | Conv1D) for path in blocks}
    additions: dict[str, Addition] = {}
    for at, event in enumerate(events):
        site = _site(event.path, at, events, sites, blocks)
        if site is None or not kinds[event.path] or event.path in additions:
            continue
        residual = _residual(at, events, blocks, site)
        if residual is not None:
            additions[event.path] = Addition(event.path, residual, site)
    return list(additions.values())


def _site(
    path: str,
    at: int,
    events: list[_Event],
    sites: list[Site],
    blocks: dict[str, tuple[str, int] | None],
) -> Site | None:
    """The attention layer of an output projection, or the last one before a feed-forward layer."""
    block = blocks[path]
    if block is None:
        return None
    mine = next((site for site in sites if site.out == path), None)
    if mine is not None or any(path.startswith(f"{site.path}.") for site in sites):
        return mine
    ran = {event.path: n for n, event in enumerate(events[:at])}
    before = [
        (ran[site.out], site) for site in sites if site.out in ran and blocks[site.out] == block
    ]
    return max(before, key=lambda pair: pair[0])[1] if before else None


def _residual(
    at: int,
    events: list[_Event],
    blocks: dict[str, tuple[str, int] | None],
    site: Site,
) -> str | None:
    """The latest module before whose input the output is added to, one that runs without heads if
    there is one."""
    event = events[at]
    if event.gave is None:
        return None
    sums = [
        tensor
        for later in events[at + 1 : at + 1 + SOON]
        for tensor in (later.given, later.gave)
        if tensor is not None and tensor.shape == event.gave.shape
    ]
    matches = []
    for earlier in reversed(events[:at]):
        if blocks[earlier.path] != blocks[event.path]:
            break
        given = earlier.given
        if given is None or given.shape != event.gave.shape:
            continue
        if any(_adds(given, event.gave, total) for total in sums):
            matches.append(earlier.path)
    inside = f"{site.path}."
    return next((path for path in matches if not path.startswith(inside)), (*matches, None)[0])


def _adds(left: Tensor, right: Tensor, total: Tensor) -> bool:
    first = float(left.flatten()[0]) + float(right.flatten()[0])
    near = math.isclose(first, float(total.flatten()[0]), rel_tol=1e-2, abs_tol=1e-2)
    return near and torch.equal(left + right, total)


def _copy(value: object) -> Tensor | None:
    """(position, width) a tensor as it is now: models go on writing into some."""
    if not isinstance(value, Tensor) or not value.is_floating_point() or not value.numel():
        return None
    return value.detach().clone().reshape(-1, value.shape[-1]) if value.ndim else None
