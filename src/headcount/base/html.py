"""Small pieces of HTML for notebooks: a grid of heads, a table. All text is escaped.

There is no style sheet and no script: notebooks and mail show what they find. Text keeps the
page's own colour, and cells have theirs, so that light and dark pages both do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from headcount.base.text import printable

if TYPE_CHECKING:
    from headcount.heads import Head, Layout

SIZE = "1.1em"
ABSENT = "#8882"
"""Behind a head that is not there: hardly more than the page, light or dark."""


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str = "") -> str:
    """A plain table; numbers are set to the right."""
    head = "".join(f"<th>{_text(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(map(_plain_cell, row))}</tr>" for row in rows)
    caption = f"<div>{_text(title)}</div>" if title else ""
    return f"{caption}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def grid(
    title: str, layout: Layout, shade: Callable[[Head], float | None], say: Callable[[Head], object]
) -> str:
    """Layers by heads for each stack of a layout, every head with a colour and a tooltip.

    Shades are from 0, light, to 1, dark; None is a head that is not there, and what is no number
    has a cross. A head has the number it had before any were removed.
    """
    rows: dict[tuple[str, int], list[str]] = {(name, at): [] for name, at, _ in layout.layers()}
    for head in layout:
        label = f"{layout.original(head)}: {say(head)}"
        rows[head.stack, head.layer].append(_cell(shade(head), label))
    parts = [f"<div>{_text(title)}</div>"]
    for stack in layout.stacks:
        lines = [
            f'<tr style="height:{SIZE}"><th>{layer}</th>{"".join(rows[stack.name, layer])}</tr>'
            for layer in range(len(stack.heads))
        ]
        widths = f'<col><col span="{max(stack.heads, default=0) or 1}" style="width:{SIZE}">'
        parts.append(
            '<table style="border-collapse:separate;border-spacing:1px;display:inline-table;'
            'text-align:center">'
            f"<caption>{_text(stack.name)}</caption><colgroup>{widths}</colgroup>"
            f"<tbody>{''.join(lines)}</tbody></table>"
        )
    return "".join(parts)


def scaled(values: Sequence[float]) -> list[float]:
    """Numbers between the smallest, 0, and the largest, 1; what is no number stays so.

    >>> scaled([1.0, 3.0, 2.0, float("inf")])
    [0.0, 1.0, 0.5, 1.0]
    """
    finite = [value for value in values if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    width = high - low
    if not 0 < width < math.inf:  # all alike, or too far apart for a difference
        return [0.5 if math.isfinite(value) else _edge(value) for value in values]
    return [(value - low) / width if math.isfinite(value) else _edge(value) for value in values]


def _edge(value: float) -> float:
    return value if math.isnan(value) else float(value > 0)


def _text(value: object) -> str:
    return escape(printable(str(value)), quote=True)


def _plain_cell(value: object) -> str:
    side = ' style="text-align:right"' if isinstance(value, int | float) else ""
    shown = f"{value:.4g}" if isinstance(value, float) else value
    return f"<td{side}>{_text(shown)}</td>"


def _cell(shade: float | None, label: str) -> str:
    inside = ""
    if shade is None:
        colour = ABSENT
    elif math.isnan(shade):
        colour, inside = ABSENT, "×"
    else:  # one hue from light to dark, which every eye can order
        colour = f"hsl(205,70%,{round(90 - 60 * min(max(shade, 0.0), 1.0))}%)"
    return f'<td style="padding:0;background:{colour}" title="{_text(label)}">{inside}</td>'
