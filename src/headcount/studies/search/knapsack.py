"""What each layer keeps under a budget: the least summed loss whose summed cost fits.

A multiple-choice knapsack, solved by dynamic programming over layers. Costs are counted in whole
units, rounded up, so that what is chosen fits for certain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

UNITS = 20_000
"""Units that a budget is counted in, where its costs are no small whole numbers."""


def knapsack(layers: Sequence[Sequence[tuple[float, float]]], limit: float) -> list[int] | None:
    """For each layer which of its ways (cost, loss) to take; None where even the least is too much.

    >>> knapsack([[(0, 9.0), (1, 5.0), (2, 0.0)], [(0, 4.0), (1, 1.0), (2, 0.0)]], 3)
    [2, 1]
    """
    whole = limit <= UNITS and all(float(cost).is_integer() for ways in layers for cost, _ in ways)
    unit = 1.0 if whole else limit / UNITS
    if limit < 0 or not unit:
        return None
    room = math.floor(limit / unit + 1e-9)
    used = [[_units(cost, unit) for cost, _ in ways] for ways in layers]
    best = np.zeros(room + 1)  # (units that may be used,) the least loss so far
    taken: list[np.ndarray] = []
    for ways, units in zip(layers, used, strict=True):
        after = np.full(room + 1, np.inf)
        choice = np.full(room + 1, -1)
        for number, (_, loss) in enumerate(ways):
            if units[number] > room:
                continue
            need = int(units[number])
            moved = np.concatenate([np.full(need, np.inf), best[: room + 1 - need]]) + loss
            better = moved < after
            after[better], choice[better] = moved[better], number
        best = after
        taken.append(choice)
    if not np.isfinite(best[room]):
        return None
    chosen, left = [], room
    for units, choice in zip(reversed(used), reversed(taken), strict=True):
        number = int(choice[left])
        chosen.append(number)
        left -= int(units[number])
    return chosen[::-1]


def _units(cost: float, unit: float) -> float:
    """Whole units, rounded up; what cannot be had has no end of them."""
    return math.inf if math.isinf(cost) else math.ceil(cost / unit - 1e-9)
