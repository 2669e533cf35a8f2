"""The replaceable share of a head: what the other heads of its layer reproduce of its output.

z are the outputs of a layer's heads on one token (and a 1 where the output projection has a bias),
W the projection's rows, z_h and W_h those of head h. What the head writes, z_h W_h, is solved for
from the others' outputs by ridge least squares, as recovery does when the head is removed:

    share = 1 - Σ ‖z_h W_h - z_rest X W_h‖² / Σ ‖z_h W_h‖²,  X = (A_rest + λI)⁻¹ A_rest,h

over all tokens that are no padding, A = Σ z zᵀ, λ the ridge times the mean diagonal of A. All
heads of a layer come from one inverse, the head surgeon's (`pruning/surgeon.py`): with P = (A +
λI)⁻¹, [I; -X] = P_:,h P_hh⁻¹. The standard error is the jackknife's over blocks of inputs: solved
again without each block. Where there are few tokens for the unknowns, every share is too high.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from headcount.base.errors import UsageError
from headcount.behaviour.result import Quantity, quantity
from headcount.heads import Layout
from headcount.models.find import sites_of
from headcount.models.linear import has_bias, read_rows
from headcount.models.sites import Site

BLOCKS = 8
"""Blocks of inputs behind the standard error, where memory allows."""
FEWEST = 3
MEMORY = 2**29
"""Bytes for the sums of all blocks and layers, at most; never fewer blocks than the fewest."""


@dataclass(frozen=True, eq=False)
class LayerSolution:
    """One layer's solve: what replaces each head, and how much of it that is."""

    site: Site
    shares: np.ndarray  # (head,)
    stderr: np.ndarray  # (head,)
    blocks: int
    tokens: int
    substitutes: Tensor  # (input, head x width): what to make of z for each head, 0 from itself


class Outputs:
    """Sums of a model's head outputs over tokens, by blocks of inputs."""

    def __init__(self, model: nn.Module) -> None:
        self.sites = [site for site in sites_of(model) if site.heads]
        outs = {site.path: model.get_submodule(site.out) for site in self.sites}
        self.rows = {path: read_rows(out) for path, out in outs.items()}  # (input, output)
        self.bias = {path: has_bias(out) for path, out in outs.items()}
        size = sum(len(rows) ** 2 * 8 for rows in self.rows.values())
        self.blocks = max(FEWEST, min(BLOCKS, MEMORY // max(size, 1)))
        self.sums = {
            path: torch.zeros(self.blocks, len(rows), len(rows), dtype=torch.float64)
            for path, rows in self.rows.items()
        }
        self.tokens = dict.fromkeys(self.rows, 0)

    @property
    def projections(self) -> list[tuple[Site, str]]:
        """Every site with each of its output projections, to be watched."""
        return [(site, out) for site in self.sites for _, out in site.places]

    def add(self, site: Site, z: Tensor, real: Tensor, start: int) -> None:
        """Take in the outputs of a batch whose first input has the number `start`.

        z is (input, token, head x width), or the first two axes in one; real is (input, token).
        """
        if z.shape[:-1].numel() != real.numel():
            return  # attention over something else than tokens is left out
        z = z.detach().reshape(*real.shape, -1).float()
        if self.bias[site.path]:
            z = torch.cat([z, z.new_ones(*z.shape[:-1], 1)], -1)
        block = (start + torch.arange(len(z), device=z.device)) % self.blocks
        for number in block.unique().tolist():
            chosen = z[real & (block == number)[:, None]]
            self.sums[site.path][number] += (chosen.T @ chosen).double().cpu()
        self.tokens[site.path] += int(real.sum())

    def solve(self, ridge: float) -> dict[tuple[str, int], LayerSolution]:
        """(stack, layer) -> its solve."""
        return {
            (site.stack, site.layer): self._solve(site, ridge)
            for site in self.sites
            if self.tokens[site.path]
        }

    def _solve(self, site: Site, ridge: float) -> LayerSolution:
        sums, rows = self.sums[site.path], self.rows[site.path]
        if not torch.isfinite(sums).all():
            raise UsageError(
                f"The outputs of {site.stack} layer {site.layer} are not all numbers (NaN or "
                "infinite); check the model's weights and dtype."
            )
        whole = sums.sum(0)
        shares, substitutes = solve_layer(whole, rows, site, ridge)
        used = [block for block in sums if float(block.diagonal().sum()) > 0]
        without = [solve_layer(whole - block, rows, site, ridge)[0] for block in used]
        stderr = jackknife(np.array(without)) if len(used) > 1 else np.full(site.heads, np.nan)
        tokens = self.tokens[site.path]
        return LayerSolution(site, shares, stderr, len(used), tokens, substitutes.float())


def solve_layer(
    a: Tensor,  # (input, input)
    rows: Tensor,  # (input, output)
    site: Site,
    ridge: float,
) -> tuple[np.ndarray, Tensor]:
    """(head,) shares, and (input, head x width) the substitutes."""
    heads, size = site.heads, site.head_dim
    scale = float(a.diagonal().mean()) or 1.0
    penalty = ridge * scale
    system = a + penalty * torch.eye(len(a), dtype=a.dtype)
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(system))
    shares = np.zeros(heads)
    substitutes = torch.zeros(len(a), heads * size, dtype=a.dtype)
    for head in range(heads):
        part = slice(head * size, (head + 1) * size)
        turned = torch.cholesky_inverse(torch.linalg.cholesky(inverse[part, part]))
        left = inverse[:, part] @ turned  # [I; -X]
        weights = rows[part]
        written = float((weights * (a[part, part] @ weights)).sum())
        # leftᵀ A left, since (A + λI) left has nothing but P_hh⁻¹ in the head's own rows
        residual = turned - penalty * left.T @ left
        missing = float((weights * (residual @ weights)).sum())
        # a head that writes nothing is no loss
        shares[head] = 1 - missing / written if written > 1e-12 * scale else 1.0
        substitutes[:, part] = -left
        substitutes[part, part] = 0
    return shares, substitutes


def jackknife(without: np.ndarray) -> np.ndarray:  # (block, head) -> (head,)
    """Standard errors from what comes out without each block.

    >>> jackknife(np.array([[1.0], [2.0], [3.0]])).round(4).tolist()
    [1.1547]
    """
    many = len(without)
    apart = without - without.mean(0)
    return np.sqrt((many - 1) / many * (apart**2).sum(0))


def replaceable_share(solved: Mapping[tuple[str, int], LayerSolution], layout: Layout) -> Quantity:
    """The share of every head with its standard error; NaN without a solve."""
    numbers = np.full((3, len(layout)), np.nan)
    for at, head in enumerate(layout):
        if (layer := solved.get((head.stack, head.layer))) is not None:
            numbers[:, at] = layer.shares[head.index], layer.stderr[head.index], layer.blocks
    return quantity("replaceable", numbers[0], numbers[1], np.nan_to_num(numbers[2]))
