"""Subset gates: exactly k heads in every step, by Gumbel top-k with a falling temperature.

Beyond the papers: differentiable subset pruning, the strongest published rival at a fixed number.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from headcount.pruning.topk import draw_top, top


@dataclass(frozen=True, kw_only=True)
class SubsetGates:
    """A drawn set of exactly k heads in every step: differentiable subset pruning.

    The k largest of w / τ + Gumbel noise are open; τ falls from `hot` to `cold`, so that early
    sets are mixed and late ones settled. At test the k largest w.
    """

    hot: float
    """Temperature at the start of the search."""
    cold: float
    """Temperature at its end."""
    name: str = "subset"
    noisy: bool = True

    def start(self, count: int, generator: torch.Generator) -> Tensor:
        """All alike; the noise makes the difference."""
        return torch.zeros(count)

    def temperature(self, done: float) -> float:
        """Falls by the same factor in every step."""
        return self.hot * (self.cold / self.hot) ** done

    def draw(self, values: Tensor, generator: torch.Generator, done: float, keep: int) -> Tensor:
        """Exactly `keep` ones."""
        return draw_top(values / self.temperature(done), keep, generator)

    def count(self, values: Tensor) -> Tensor:
        """No penalty: the number is always the asked one."""
        return values.new_zeros(())

    def open(self, values: Tensor, keep: int | None) -> Tensor:
        """The `keep` largest."""
        return top(values, len(values) if keep is None else keep)

    def hold(self, values: Tensor, keep: int) -> Tensor:
        """Around zero: a common shift changes nothing here."""
        return values - values.mean()
