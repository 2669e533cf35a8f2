"""What code written for transformers 4 imports and transformers 5 no longer has.

    from headcount.compat import find_pruneable_heads_and_indices, prune_linear_layer

The functions do what they did there, so that old modelling files run again. They check nothing
about the model as a whole: `hc.remove` takes heads out of any model and verifies the result.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

Layer = TypeVar("Layer", nn.Linear, Conv1D)


def find_pruneable_heads_and_indices(
    heads: Collection[int], n_heads: int, head_size: int, already_pruned_heads: Collection[int]
) -> tuple[set[int], Tensor]:
    """(heads that are still there, rows of the projections that stay).

    `heads` are numbers of the unpruned layer; `n_heads` counts those that the layer still has.

    >>> heads, index = find_pruneable_heads_and_indices([1, 2], 3, 2, {0})
    >>> sorted(heads), index.tolist()
    ([1, 2], [4, 5])
    """
    gone = set(already_pruned_heads)
    heads = set(heads) - gone
    shifted = {head - sum(earlier < head for earlier in gone) for head in heads}
    stays = torch.tensor([head not in shifted for head in range(n_heads)])
    return heads, torch.arange(n_heads * head_size)[stays.repeat_interleave(head_size)]


def prune_linear_layer(layer: nn.Linear, index: Tensor, dim: int = 0) -> nn.Linear:
    """A linear layer with only these outputs (`dim` 0) or inputs (`dim` 1)."""
    weight = layer.weight.index_select(dim, index.to(layer.weight.device)).detach().clone()
    small = nn.Linear(weight.shape[1], weight.shape[0], bias=layer.bias is not None)
    return _filled(small, layer, weight, index if dim == 0 else None)


def prune_conv1d_layer(layer: Conv1D, index: Tensor, dim: int = 1) -> Conv1D:
    """The same for GPT-2's Conv1D, whose weight is (input, output): `dim` 1 are its outputs."""
    weight = layer.weight.index_select(dim, index.to(layer.weight.device)).detach().clone()
    small = Conv1D(weight.shape[1], weight.shape[0])
    return _filled(small, layer, weight, index if dim == 1 else None)


def prune_layer(
    layer: nn.Linear | Conv1D, index: Tensor, dim: int | None = None
) -> nn.Linear | Conv1D:
    """Either of the two, each with its own usual `dim`."""
    if isinstance(layer, nn.Linear):
        return prune_linear_layer(layer, index, 0 if dim is None else dim)
    if isinstance(layer, Conv1D):
        return prune_conv1d_layer(layer, index, 1 if dim is None else dim)
    raise ValueError(f"Can't prune layer of class {type(layer).__name__}")


def _filled(small: Layer, layer: Layer, weight: Tensor, outputs: Tensor | None) -> Layer:
    """`small` with a weight, and the bias of `layer` at these outputs, or all of it."""
    small = small.to(device=weight.device, dtype=weight.dtype)
    with torch.no_grad():
        small.weight.copy_(weight)
        if layer.bias is not None:
            small.bias.copy_(layer.bias if outputs is None else layer.bias[outputs])
    small.weight.requires_grad = layer.weight.requires_grad
    return small
