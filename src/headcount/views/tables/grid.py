"""The head grid in a terminal: layers by heads, in colour where there is any, plain when piped.

head_grid(layout, scores.values, title="importance")      # a shade for each number
kept_grid(mask)                                            # which heads are kept
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from headcount.base.html import scaled
from headcount.base.text import printable
from headcount.heads import Head, Layout, Mask

VIRIDIS = [
    "440154",
    "482878",
    "3e4989",
    "31688e",
    "26828e",
    "1f9e89",
    "35b779",
    "6ece58",
    "b5de2b",
    "fde725",
]
"""From low to high: a colour for each of the digits 0 to 9."""
REMOVED, UNKNOWN, KEPT = "·", "?", "#"


@dataclass(frozen=True)
class HeadGrid:
    """A row for each layer and a cell for each head, where it was before any were removed."""

    layout: Layout
    shades: Mapping[Head, int | None]
    """The tenth that a head's number is in, None without one; a removed head is missing."""
    title: str = ""
    ends: tuple[str, str] | None = None
    """The smallest and the largest number, in words; None where heads have no numbers."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        coloured = console.color_system is not None and not console.no_color
        rich = coloured and console.color_system != "standard"
        if self.title:
            yield Text(printable(self.title))
        for stack in self.layout.stacks:
            if len(self.layout.stacks) > 1:
                yield Text(stack.name)
            numbers = [
                self.layout.original(head).index for head in self.layout if head.stack == stack.name
            ]
            widest = max(numbers, default=-1) + 1
            double = 2 * widest + 6 <= options.max_width
            for layer in range(len(stack.heads)):
                yield self._row(stack.name, layer, widest, rich, 2 if double else 1)
        if legend := self._legend(rich):
            yield Text(f"      {printable(legend)}", style="dim" if coloured else "")

    def _legend(self, rich: bool) -> str:
        names = ("dark", "bright") if rich else ("0", "9")
        parts = [f"{name} is {end}" for name, end in zip(names, self.ends or (), strict=False)]
        if len(self.shades) < len(self.layout) or any(s.numbers for s in self.layout.stacks):
            parts.append(f"{REMOVED} is removed")
        return ", ".join(parts)

    def _row(self, stack: str, layer: int, widest: int, rich: bool, wide: int) -> Text:
        heads = {
            self.layout.original(head).index: head
            for head in self.layout
            if head.stack == stack and head.layer == layer
        }
        row = Text(f"{layer:4d}  ", no_wrap=True, overflow="crop")
        for index in range(widest):
            head = heads.get(index)
            if head is None or head not in self.shades:
                existed = head is not None or self.layout[stack].numbers
                row.append((REMOVED if existed else "").ljust(wide))
                continue
            shade = self.shades[head]
            if rich and shade is not None:
                row.append("█" * wide, style=f"#{VIRIDIS[shade]}")
            else:
                known = KEPT if self.ends is None else str(shade)
                row.append((UNKNOWN if shade is None else known).ljust(wide))
        return row


def head_grid(
    layout: Layout,
    values: Sequence[float | None],
    *,
    kept: Mask | None = None,
    title: str = "",
    unit: str = "",
) -> HeadGrid:
    """Heads shaded by a number each, in the layout's order; those that `kept` lacks are dots."""
    plain = [math.nan if value is None else float(value) for value in values]
    shades = {
        head: None if math.isnan(share) else min(9, int(10 * share))
        for head, share in zip(layout, scaled(plain), strict=True)
        if kept is None or head in kept
    }
    known = [value for value in plain if math.isfinite(value)]
    ends = (f"{min(known):.3g}", f"{max(known):.3g} {unit}".rstrip()) if known else None
    return HeadGrid(layout, shades, title, ends)


def kept_grid(mask: Mask | Mapping[str, object], title: str = "Heads kept, by layer") -> HeadGrid:
    """Which heads of a mask, or of a record's, are kept."""
    mask = mask if isinstance(mask, Mask) else Mask.from_json(mask)
    return HeadGrid(mask.layout, dict.fromkeys(mask.kept, 5), title)
