"""Ridge least squares from sums alone: rows come and go, only A = Σ xᵀx and B = Σ xᵀy stay.

Where some columns x are a path of rank r (`path` of them, behind the others z),

    min ‖[z, 1] W + x M - y‖² + λ ‖W - W₀‖² + μ ‖M - M₀‖²,   rank M ≤ r

has the solution M = M̂ Q Qᵀ: M̂ solves it for any rank, W is the best for each M, what is left is
tr (M - M̂)ᵀ S (M - M̂) with S = A_xx + μI - A_xz (A_zz + λI)⁻¹ A_zx, and Q are the first r right
singular vectors of Lᵀ M̂, S = L Lᵀ.
"""

from __future__ import annotations

import torch
from torch import Tensor

from headcount.base.errors import UsageError


class NormalEquations:
    """min ‖x W - y‖² + λ ‖W - W₀‖² over rows that are added piece by piece, in float64.

    With `bias`, x gets a column of ones behind the others. The last `path` columns before it may
    get weights of this `rank` at most.
    """

    def __init__(
        self, inputs: int, outputs: int, *, bias: bool, path: int = 0, rank: int = 0
    ) -> None:
        size = inputs + bias
        self.bias = bias
        self.rank = rank
        at = torch.arange(size)
        self.on_path = (at >= inputs - path) & (at < inputs)
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
        """W = W₀ + (A + λI)⁻¹ (B - A W₀), λ = `ridge` times the mean diagonal of A; of the columns
        on a path and of the others each."""
        self._require_numbers(layer)
        x = self.on_path
        if not x.any():
            return start + self._step(self.a, self.b - self.a @ start, ridge, layer)
        a, z = self.a.clone(), ~x
        for part in (x, z):
            a.diagonal()[part] += ridge * a.diagonal()[part].mean() if part.any() else 0.0
        solved = start + self._step(a, self.b - self.a @ start, 0.0, layer)
        if self.rank >= int(x.sum()):
            return solved
        others = self._step(a[z][:, z], a[z][:, x], 0.0, layer)
        left = a[x][:, x] - a[x][:, z] @ others
        factor = torch.linalg.cholesky(left)
        directions = torch.linalg.svd(factor.T @ solved[x], full_matrices=False).Vh[: self.rank]
        wanted = solved[x] @ directions.T @ directions
        solved[z] += others @ (solved[x] - wanted)
        solved[x] = wanted
        return solved

    def solve_scales(self, start: Tensor, size: int, ridge: float, layer: str) -> Tensor:
        """The rows of `start`, `size` at a time with one factor each; a bias is solved freely, and
        a path stays as it is.

        The same least squares with as many unknowns as there are factors, and one bias each output:
        min ‖Σ s_h x_h W_h + b - y‖² + λ‖s - 1‖², λ = `ridge` times the mean diagonal.
        """
        self._require_numbers(layer)
        rows = len(start) - self.bias - int(self.on_path.sum())
        fixed = start * self.on_path[:, None]
        rest = self.b - self.a @ fixed
        if not rows:
            if self.bias:
                a, last = self.a[-1:, -1:], start[-1:]
                fixed[-1:] = last + self._step(a, rest[-1:] - a @ last, ridge, layer)
            return fixed
        a, b, w = self.a[:rows, :rows], rest[:rows], start[:rows]
        # the best bias for any factors leaves what varies about the means
        mean, target = self.a[-1, :rows] / self.rows, rest[-1] / self.rows
        if self.bias:
            a = a - self.rows * torch.outer(mean, mean)
            b = b - self.rows * torch.outer(mean, target)
        groups = torch.arange(rows) // size
        one = torch.nn.functional.one_hot(groups).double()  # (row, factor)
        system = one.T @ (a * (w @ w.T)) @ one
        factors = torch.ones(system.shape[0], 1, dtype=torch.float64)
        wanted = one.T @ (b * w).sum(1, keepdim=True)
        factors += self._step(system, wanted - system @ factors, ridge, layer)
        scaled = w * (one @ factors)
        bias = (target - mean @ scaled)[None] if self.bias else scaled[:0]
        return torch.cat([scaled, fixed[self.on_path], bias])

    def _require_numbers(self, layer: str) -> None:
        if not self.rows:
            raise UsageError(f"No token of the inputs counts, so {layer} cannot be solved again.")
        if not (torch.isfinite(self.a).all() and torch.isfinite(self.b).all()):
            raise UsageError(f"The inputs of {layer} are not all numbers (NaN or infinite).")

    def _step(self, a: Tensor, rest: Tensor, ridge: float, layer: str) -> Tensor:
        """(A + λI)⁻¹ rest"""
        if not len(a):
            return rest
        penalty = ridge * float(a.diagonal().mean())
        system = a + penalty * torch.eye(len(a), dtype=torch.float64)
        factor, info = torch.linalg.cholesky_ex(system)
        # a factor that exists but is nearly flat gives numbers that mean nothing
        pivots = factor.diagonal()
        if int(info) or float(pivots.min()) ** 2 <= 1e-13 * float(pivots.max()) ** 2:
            raise UsageError(
                f"The system of {layer} is singular: {self.rows} tokens for {len(a)} unknowns "
                f"and a ridge of {ridge}. Give more inputs or a higher ridge."
            )
        return torch.cholesky_solve(rest, factor)

    def error(self, weights: Tensor) -> float:
        """‖x W - y‖² / ‖y‖² over all rows."""
        left = (weights * (self.a @ weights - 2 * self.b)).sum()
        return max(float(left) + self.square, 0.0) / max(self.square, 1e-300)
