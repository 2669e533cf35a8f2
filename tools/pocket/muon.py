"""Muon: momentum whose every update is made orthogonal, for the matrices inside a transformer.

The pocket BERT learns to compare sentences several times sooner with it than with AdamW alone.
`torch.optim.Muon` computes in bfloat16, which CPUs without such instructions do ten times slower.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

STEPS = 5
COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of the Newton-Schulz polynomial, Jordan et al. 2024


class Muon(torch.optim.Optimizer):
    """Matrices of one shape are updated together."""

    def __init__(
        self,
        matrices: list[nn.Parameter],
        *,
        lr: float,
        weight_decay: float,
        momentum: float = 0.95,
    ) -> None:
        super().__init__(matrices, {"lr": lr, "decay": weight_decay, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """One update."""
        for group in self.param_groups:
            shapes: dict[torch.Size, list[nn.Parameter]] = {}
            for matrix in group["params"]:
                shapes.setdefault(matrix.shape, []).append(matrix)
            for matrices in shapes.values():
                self._update(matrices, **{k: group[k] for k in ("lr", "decay", "momentum")})

    def _update(
        self, matrices: list[nn.Parameter], *, lr: float, decay: float, momentum: float
    ) -> None:
        ahead = []
        for matrix in matrices:
            slope: Any = matrix.grad
            mean = self.state[matrix].setdefault("mean", torch.zeros_like(matrix))
            mean.lerp_(slope, 1 - momentum)
            ahead.append(slope.lerp(mean, momentum))
        # as large as an AdamW update would be, so that both can have one learning rate
        size = 0.2 * max(matrices[0].shape) ** 0.5
        for matrix, update in zip(matrices, orthogonal(torch.stack(ahead)), strict=True):
            matrix.mul_(1 - lr * decay).sub_(update, alpha=lr * size)


def orthogonal(matrices: Tensor) -> Tensor:
    """(matrix, row, column) with all singular values brought near 1."""
    wide = matrices if matrices.shape[1] <= matrices.shape[2] else matrices.mT
    wide = wide / (wide.flatten(1).norm(dim=1)[:, None, None] + 1e-7)
    one, three, five = COEFFICIENTS
    for _ in range(STEPS):
        square = wide @ wide.mT
        wide = one * wide + (three * square + five * square @ square) @ wide
    return wide if matrices.shape[1] <= matrices.shape[2] else wide.mT
