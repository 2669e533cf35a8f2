"""What a search may cost: a loss in score (`1%`, `0.01`, `0`), or a budget (`0.8x`, `12ms`, `20M`).

Nothing here needs torch: what cannot be read is refused before anything is loaded.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

from headcount.base.errors import UsageError

Kind = Literal["latency", "parameters", "cache"]
UNITS: dict[Kind, dict[str, float]] = {
    "latency": {"ms": 1e-3, "s": 1.0, "us": 1e-6},
    "parameters": {"": 1.0, "k": 1e3, "M": 1e6, "B": 1e9, "G": 1e9},
    "cache": {"": 1.0, "B": 1.0, "kB": 1e3, "KB": 1e3, "MB": 1e6, "KiB": 1024.0, "MiB": 2.0**20},
}
"""What an amount of each kind may end in, and what that is worth."""
HOW: dict[Kind, str] = {
    "latency": "0.8x of the whole model's time, or 12ms",
    "parameters": "0.8x of the whole model's, or 20M",
    "cache": "0.5x of the whole model's, or 9216 bytes a token",
}


@dataclass(frozen=True)
class MaxDrop:
    """The largest loss in score: a share of the full model's, or the score's own unit."""

    value: float
    relative: bool

    def allowed(self, full: float) -> float:
        """The loss that is allowed where the full model has this score."""
        return self.value * abs(full) if self.relative else self.value

    def __str__(self) -> str:
        return f"{100 * self.value:g} %" if self.relative else f"{self.value:g}"


@dataclass(frozen=True)
class CostBudget:
    """The most that a model may take: seconds of a forward pass, parameters, or bytes a token."""

    kind: Kind
    value: float
    relative: bool
    """`value` is a share of the whole model's."""

    def limit(self, whole: float) -> float:
        """The amount, where the whole model takes `whole`."""
        return self.value * whole if self.relative else self.value

    def __str__(self) -> str:
        if self.relative:
            return f"{self.value:g} × the {self.kind}"
        amount = f"{1000 * self.value:g} ms" if self.kind == "latency" else f"{self.value:,.0f}"
        return f"{amount} of {self.kind}"


Bound = MaxDrop | CostBudget


def read_drop(text: str | float) -> MaxDrop:
    """`1%` is relative to the full model's score, `0.01` is in the score's unit, `0` is none.

    >>> read_drop("1%"), read_drop("0.01")
    (MaxDrop(value=0.01, relative=True), MaxDrop(value=0.01, relative=False))
    """
    words = str(text).strip()
    number = _number(words.removesuffix("%").strip())
    if number is None:
        raise UsageError(f"A loss is written as 1%, 0.01 or 0, not '{text}'.")
    if number < 0:
        raise UsageError(f"The largest loss is not negative: {text}. Write 0 for none.")
    return MaxDrop(number / 100, True) if words.endswith("%") else MaxDrop(number, False)


def read_budget(kind: Kind, text: str | float) -> CostBudget:
    """`0.8x` of the whole model's, or an amount with its unit.

    >>> read_budget("latency", "0.8x"), read_budget("parameters", "20M").value
    (CostBudget(kind='latency', value=0.8, relative=True), 20000000.0)
    """
    words = str(text).strip()
    match = re.fullmatch(r"(.*?)\s*([a-zA-Z×]*)", words)
    number, unit = (None, "") if match is None else (_number(match[1]), match[2])
    relative = unit in ("x", "×")
    if number is None or not (relative or unit in UNITS[kind]):
        raise UsageError(f"A budget of {kind} is written as {HOW[kind]}, not '{text}'.")
    if number <= 0:
        raise UsageError(f"A budget of {kind} is above 0, not {text}.")
    return CostBudget(kind, number if relative else number * UNITS[kind][unit], relative)


def read_bound(
    max_drop: str | float | None = None,
    max_latency: str | float | None = None,
    max_parameters: str | float | None = None,
    max_cache: str | float | None = None,
) -> Bound | None:
    """The one bound that was given; None without any."""
    budgets: dict[Kind, str | float | None] = {
        "latency": max_latency,
        "parameters": max_parameters,
        "cache": max_cache,
    }
    given: list[Bound] = [] if max_drop is None else [read_drop(max_drop)]
    given += [read_budget(kind, text) for kind, text in budgets.items() if text is not None]
    if len(given) > 1:
        names = [f"--max-{'drop' if isinstance(bound, MaxDrop) else bound.kind}" for bound in given]
        raise UsageError(f"One bound at a time: {' and '.join(names)} were given.")
    return given[0] if given else None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
