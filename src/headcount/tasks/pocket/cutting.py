"""Heads switched off by zeroing what they hand to their output projection.

The pocket world proves by itself that its tasks need attention, so it brings this small tool;
gating, masking and removing real models is the business of `headcount.models`.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

# The projection behind the heads, by how its name ends, in BERT and in Marian.
PROJECTIONS = ("attention.output.dense", "self_attn.out_proj", "encoder_attn.out_proj")


def projections(model: nn.Module, *, only: str = "") -> list[nn.Linear]:
    """The output projections of all attention layers whose name has the pattern `only` in it."""
    return [
        module
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and name.endswith(PROJECTIONS) and re.search(only, name)
    ]


def random_cuts(layers: int, heads: int, share: float, generator: torch.Generator) -> Tensor:
    """Which heads stay, (layer, head) of 0.0 and 1.0; the share is of all heads together."""
    keep = torch.ones(layers * heads)
    keep[torch.randperm(layers * heads, generator=generator)[: round(share * layers * heads)]] = 0.0
    return keep.view(layers, heads)


@contextmanager
def heads_cut(model: nn.Module, keep: Tensor, *, only: str = "") -> Generator[None]:
    """While open, the heads that `keep` (layer, head) has 0 for hand on nothing."""

    def hook(row: Tensor) -> Any:
        def zero(_: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            hidden = args[0]  # (..., heads x width)
            gates = row.repeat_interleave(hidden.shape[-1] // len(row))
            return (hidden * gates, *args[1:])

        return zero

    layers = projections(model, only=only)
    handles = [
        layer.register_forward_pre_hook(hook(row)) for layer, row in zip(layers, keep, strict=True)
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
