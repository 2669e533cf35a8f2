"""Ridge least squares from sums alone: rows come and go, only A = Σ xᵀx and B = Σ xᵀy stay."""

from __future__ import annotations

import torch
from torch import Tensor

from headcount.base.errors import UsageError


class NormalEquations:
    """min ‖x W - y‖² + λ ‖W - W₀‖² over rows that are added piece by piece, in float64.

    With `bias`, x gets a column of ones behind the others.
    """

    def __init__(self, inputs: int, outputs: int, *, bias: bool) -> None:
        size = inputs + bias
        self.bias = bias
        self.a = torch.zeros(size, size, dtype=torch.float64)
        self.b = torch.zeros(size, outputs, dtype=torch.float64)
        self.square = 0.0
        """Σ ‖y‖²"""
        self.rows = 0

    def add(self, x: Tensor, y: Tensor) -> None:  # (row, input), (row, output)
        """Add rows."""
        x, y = x.double(), y.double()
        if self.bias:
            x = torch.cat([x, x.new_ones(len(x), 1)], dim=1)
        self.a += (x.T @ x).cpu()
        self.b += (x.T @ y).cpu()
        self.square += float(y.square().sum())
        self.rows += len(x)

    def solve(self, start: Tensor, ridge: float, layer: str) -> Tensor:
        """W = W₀ + (A + λI)⁻¹ (B - A W₀), λ = `ridge` times the mean diagonal of A."""
        if not self.rows:
            raise UsageError(f"No token of the inputs counts, so {layer} cannot be solved again.")
        if not (torch.isfinite(self.a).all() and torch.isfinite(self.b).all()):
            raise UsageError(f"The inputs of {layer} are not all numbers (NaN or infinite).")
        if not len(self.a):
            return start
        penalty = ridge * float(self.a.diagonal().mean())
        system = self.a + penalty * torch.eye(len(self.a), dtype=torch.float64)
        factor, info = torch.linalg.cholesky_ex(system)
        # a factor that exists but is nearly flat gives numbers that mean nothing
        pivots = factor.diagonal()
        if int(info) or float(pivots.min()) ** 2 <= 1e-13 * float(pivots.max()) ** 2:
            raise UsageError(
                f"The system of {layer} is singular: {self.rows} tokens for {len(self.a)} unknowns "
                f"and a ridge of {ridge}. Give more inputs or a higher ridge."
            )
        return start + torch.cholesky_solve(self.b - self.a @ start, factor)

    def error(self, weights: Tensor) -> float:
        """‖x W - y‖² / ‖y‖² over all rows."""
        left = (weights * (self.a @ weights - 2 * self.b)).sum()
        return max(float(left) + self.square, 0.0) / max(self.square, 1e-300)
