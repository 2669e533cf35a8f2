"""Kinds of learned gates: what is trained for each head, and how a gate comes of it.

A kind knows nothing of models or training. `values` is one number per head; everything that a
gradient must pass is computed from it, for all heads at once.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor


class GateKind(Protocol):
    """One way to learn gates."""

    @property
    def name(self) -> str:
        """The method's name."""
        ...

    @property
    def noisy(self) -> bool:
        """Whether training gates are drawn anew in every step."""
        ...

    def start(self, count: int, generator: torch.Generator) -> Tensor:
        """(head,) the values before the first step."""
        ...

    def draw(self, values: Tensor, generator: torch.Generator, done: float, keep: int) -> Tensor:
        """(head,) this step's gates, differentiable; `done` of the search is over (0 to 1)."""
        ...

    def count(self, values: Tensor) -> Tensor:
        """How many gates are open, differentiable: what the penalty is on."""
        ...

    def open(self, values: Tensor, keep: int | None) -> Tensor:
        """(head,) which gates are open when nothing is drawn."""
        ...

    def hold(self, values: Tensor, keep: int) -> Tensor:
        """The values moved by one common amount so that `keep` gates are open."""
        ...
