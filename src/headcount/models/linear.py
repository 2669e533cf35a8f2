"""Output projections as one matrix, however their module keeps it: Linear, or GPT-2's Conv1D."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers.pytorch_utils import Conv1D

from headcount.models.cut import LinearPath


def has_bias(out: object) -> bool:
    """Whether the projection adds a bias."""
    return getattr(out, "bias", None) is not None


def weight_of(layer: Any) -> Tensor:  # -> (input, output)
    """The weights, inputs first; a view, not a copy."""
    return inputs_first(layer, layer.weight)


def inputs_first(layer: object, weight: Tensor) -> Tensor:
    """(input, output) what has the shape of the layer's weight, such as its gradient."""
    return weight if isinstance(layer, Conv1D) else weight.T


def read_rows(out: Any) -> Tensor:  # -> (input + bias, output)
    """Weights and bias, the bias as the last row, in float64 on the CPU."""
    rows = [weight_of(out)] + ([out.bias[None]] if has_bias(out) else [])
    return torch.cat([part.detach().double().cpu() for part in rows])


def write_rows(out: Any, rows: Tensor) -> None:
    """Set weights and bias to what `read_rows` would give."""
    weight = rows[:-1] if has_bias(out) else rows
    out.weight.copy_(weight if isinstance(out, Conv1D) else weight.T)
    if has_bias(out):
        out.bias.copy_(rows[-1])


def read_path(path: LinearPath) -> Tensor:  # -> (input, output)
    """What a linear path multiplies its input with, in float64 on the CPU."""
    up = path.up.detach().double().cpu().T
    return up if path.down is None else path.down.detach().double().cpu().T @ up


def write_path(path: LinearPath, matrix: Tensor) -> None:
    """Set its weights to what `read_path` would give, for a matrix of no higher rank."""
    if path.down is None:
        path.up.copy_(matrix.T)
        return
    left, sizes, right = torch.linalg.svd(matrix, full_matrices=False)
    rank = len(path.down)
    root = sizes[:rank].sqrt()
    path.down.copy_((left[:, :rank] * root).T)
    path.up.copy_(right[:rank].T * root)
