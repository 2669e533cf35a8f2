"""Small pieces of HTML for notebooks: a grid of heads, a table. All text is escaped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape

CELL = "width:1.1em;height:1.1em;text-align:center;border:1px solid #8884;padding:0"


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A plain table."""
    head = "".join(f"<th>{escape(str(column))}</th>" for column in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def grid(
    title: str, stacks: Iterable[tuple[str, Sequence[int]]], shade: Callable[[str, int, int], float]
) -> str:
    """Layers by heads for each stack, every head as dark as `shade(stack, layer, head)` says.

    Shades are from 0, light, to 1, dark; not a number is left blank.
    """
    parts = [f"<div>{escape(title)}</div>"]
    for name, heads in stacks:
        rows = []
        for layer, count in enumerate(heads):
            cells = "".join(_cell(name, layer, head, shade(name, layer, head))
                            for head in range(count))  # fmt: skip
            rows.append(f"<tr><td>{layer}</td>{cells}</tr>")
        caption = f"<caption>{escape(name)}</caption>"
        parts.append(f'<table style="border-collapse:collapse">{caption}{"".join(rows)}</table>')
    return "".join(parts)


def _cell(stack: str, layer: int, head: int, shade: float) -> str:
    label = escape(f"{stack}.{layer}.{head}: {shade:.3g}", quote=True)
    if shade != shade:  # not a number
        return f'<td style="{CELL}" title="{label}"></td>'
    # one hue from light to dark, which every eye can order
    light = round(95 - 65 * min(max(shade, 0.0), 1.0))
    return f'<td style="{CELL};background:hsl(205 70% {light}%)" title="{label}"></td>'
