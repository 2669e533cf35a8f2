"""Scores: one number per head."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headcount.base import html
from headcount.base.errors import UsageError
from headcount.base.text import line, short
from headcount.heads.layout import Head, Layout, read_heads
from headcount.heads.mask import Mask


@dataclass(frozen=True, repr=False)
class Scores:
    """One number per head of a layout, in the layout's order."""

    layout: Layout
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "values", tuple(float(value) for value in self.values))
        except (TypeError, ValueError, OverflowError) as error:
            raise UsageError(f"Scores are numbers, not {short(self.values)}.") from error
        if len(self.values) != len(self.layout):
            raise UsageError(f"{len(self.values)} scores for {len(self.layout)} heads.")

    def __getitem__(self, head: Sequence[str | int]) -> float:
        (head,) = read_heads([head])
        if head not in self.layout:
            raise UsageError(f"There is no head {head} in this model: {self.layout}.")
        return dict(self.items())[head]

    def items(self) -> Iterator[tuple[Head, float]]:
        """(head, score) in the layout's order."""
        return zip(self.layout, self.values, strict=True)

    def ranked(self) -> list[Head]:
        """Heads from the lowest score to the highest; ties by position."""
        if any(math.isnan(value) for value in self.values):
            raise UsageError("Scores that are not numbers (NaN) cannot be ranked.")
        return [head for head, _ in sorted(self.items(), key=lambda item: item[1])]

    def keep_best(self, count: int) -> Mask:
        """The mask of the `count` highest scores.

        >>> Scores(Layout.of(encoder=[2]), (0.1, 0.9)).keep_best(1)
        Mask(encoder: 1; keeps 1 of 2 heads)
        """
        if not 0 <= count <= len(self.layout):
            raise UsageError(f"Cannot keep {count} of {len(self.layout)} heads.")
        ranked = self.ranked()
        return Mask(self.layout, frozenset(ranked[len(ranked) - count :]))

    def by_layer(self) -> dict[str, list[list[float]]]:
        """Scores as lists: stack -> layer -> head."""
        out = {stack.name: [[] for _ in stack.heads] for stack in self.layout.stacks}
        for head, value in self.items():
            out[head.stack][head.layer].append(value)
        return out

    def __repr__(self) -> str:
        if not self.values:
            return "Scores(no heads)"
        return line(f"{type(self).__name__}({self._summary()})")

    def _summary(self) -> str:
        numbers = [item for item in self.items() if not math.isnan(item[1])]
        parts = [f"{len(self.values)} heads"]
        if numbers:
            ends = (("lowest", min), ("highest", max))
            extremes = [(which, *end(numbers, key=lambda item: item[1])) for which, end in ends]
            shown = (f"{which} {self.layout.original(h)} {v:.4g}" for which, h, v in extremes)
            parts.append(", ".join(shown))
        if len(numbers) < len(self.values):
            parts.append(f"{len(self.values) - len(numbers)} NaN")
        return "; ".join(parts)

    def _repr_html_(self) -> str:
        shades = dict(zip(self.layout, html.scaled(self.values), strict=True))
        values = dict(self.items())
        return html.grid(
            f"{type(self).__name__}: {self._summary()}",
            self.layout,
            shades.__getitem__,
            lambda head: f"{values[head]:.4g}",
        )

    def to_json(self) -> dict[str, object]:
        """A plain dict that `Scores.from_json` reads back."""
        return {"layout": self.layout.to_json(), "scores": self.by_layer()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Scores:
        """The scores that `to_json` wrote."""
        try:
            layout = Layout.from_json(data["layout"])
            by_layer = {
                name: [list(layer) for layer in layers] for name, layers in data["scores"].items()
            }
            counts = {name: [len(layer) for layer in layers] for name, layers in by_layer.items()}
        except (KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"These are not scores: {short(data)}") from error
        if counts != {stack.name: list(stack.heads) for stack in layout.stacks}:
            raise UsageError(f"The scores count other heads ({short(counts)}) than {layout}.")
        # by name: a file may have its stacks in another order
        return cls(layout, tuple(by_layer[h.stack][h.layer][h.index] for h in layout))
