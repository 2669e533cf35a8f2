"""The answer of a search as people share it: one line, three figures, one line of small print.

The terminal, the page, a notebook and `headcount report --card` show the same card.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import PurePath
from typing import Any

from headcount.base.names import split_words
from headcount.base.text import minus, printable, without_paths

SearchData = Mapping[str, Any]
"""What is in `search.json`."""


@dataclass(frozen=True, kw_only=True)
class Tile:
    """One figure of the card."""

    label: str
    value: str
    detail: str


@dataclass(frozen=True, kw_only=True)
class AnswerCard:
    """What a search says in a picture."""

    title: str
    subject: str
    """Model and task."""
    tiles: tuple[Tile, ...]
    small_print: str
    """Data and probability."""
    command: str | None = None
    """Without the paths of the machine that it ran on."""

    def lines(self) -> list[str]:
        """The card as plain text."""
        width = max((len(tile.label) for tile in self.tiles), default=0)
        tiles = [f"{tile.label:<{width}}  {tile.value}  {tile.detail}" for tile in self.tiles]
        return [self.title, *(f"  {tile.rstrip()}" for tile in tiles), self.small_print]

    def _repr_html_(self) -> str:
        """The card in a notebook."""
        cells = "".join(
            f'<td style="text-align:left;padding-right:2em">{escape(tile.label)}<br>'
            f'<b style="font-size:1.3em">{escape(tile.value)}</b><br>{escape(tile.detail)}</td>'
            for tile in self.tiles
        )
        return (
            f'<div>{escape(self.subject)}</div><div style="font-size:1.8em"><b>'
            f"{escape(self.title)}</b></div><table><tr>{cells}</tr></table>"
            f"<small>{escape(self.small_print)}</small>"
        )


def answer_card(data: SearchData) -> AnswerCard:
    """The card of what is in `search.json`."""
    name = printable(PurePath(str(data["model"])).name)
    answered = data.get("difference") is not None
    sized = data.get("parameters") is not None
    tiles = (_score(data), _speed(data), *((_size(data),) if sized else ())) if answered else ()
    return AnswerCard(
        title=_title(data),
        subject=f"{name} on {printable(str(data['task']))}",
        tiles=tiles,
        small_print=_small_print(data),
        command=without_paths(str(command)) if (command := data.get("command")) else None,
    )


def _title(data: SearchData) -> str:
    count, bound = f"{data['kept']} of {data['heads']} heads", printable(str(data.get("bound")))
    if data.get("difference") is None:
        return f"No pruned model is within {bound}"
    if data.get("within_bound") is False:
        return f"{count} are not enough"
    if data.get("by") == "budget":
        return f"{count} fit the budget"
    return f"The knee is at {count}" if data.get("bound") is None else f"{count} are enough"


def _score(data: SearchData) -> Tile:
    """The score before and after, on the held-out set."""
    digits = 3 if abs(data["full"]) < 10 else 2
    lost = data["difference"]
    change = "undefined" if lost["value"] is None else f"{lost['value']:+.{digits}f}"
    if lost["low"] is not None:
        change += f" [{lost['low']:+.{digits}f}, {lost['high']:+.{digits}f}]"
    return Tile(
        label=printable(str(data["metric"])),
        value=f"{data['full']:.{digits}f} → {data['score']:.{digits}f}",
        detail=minus(re.sub(r"[+-](?=0\.0+\b)", "", change)),  # nothing has no sign
    )


def _speed(data: SearchData) -> Tile:
    """How fast, at which shape, and what the FLOPs allow."""
    if data.get("speedup") is None:
        return Tile(label="speed", value="not measured", detail="")
    speed, shape = data["speedup"], data["timing"]["shapes"][0]
    detail = f"[{speed['low']:.2f}, {speed['high']:.2f}]"
    if shape["bound"] is not None:
        detail += f", FLOPs allow {shape['bound']:.2f} ×"
    return Tile(
        label=f"speed at {shape['batch']} × {shape['reads']}",
        value=f"{speed['value']:.2f} ×",
        detail=detail,
    )


def _size(data: SearchData) -> Tile:
    """Parameters, and the cache where the model has one."""
    before, after = (data["parameters"][when] for when in ("before", "after"))
    digits, unit, name = (1, 1e6, "M") if before >= 1e6 else (0, 1e3, "k")
    value = f"{before / unit:.{digits}f} → {after / unit:.{digits}f} {name}"
    detail = minus(f"{100 * (after - before) / before:+.0f} %")
    if (cache := data.get("cache")) is not None and cache["before"]:
        change = minus(f"{100 * (cache['after'] - cache['before']) / cache['before']:+.0f} %")
        detail += f"; cache {cache['before']:,} → {cache['after']:,} bytes a token, {change}"
    return Tile(label="parameters", value=value, detail=detail)


def _small_print(data: SearchData) -> str:
    sets = data.get("rows") or {}
    rows = sets.get("held_out") or sets.get("selection")
    parts = [] if rows is None else [split_words(rows["split"], rows["n"])]
    if data.get("bound") is not None and data.get("probability") is not None:
        likely = as_percent(data["probability"])
        parts.append(f"within {data['bound']} with a probability of {likely}")
    if data.get("method"):
        parts.append(f"heads by {data['method']}")
    if (random := data.get("random")) is not None:
        digits = 3 if abs(data["full"]) < 10 else 2
        parts.append(f"as many at random: {random['mean']:.{digits}f}")
    return "; ".join(map(printable, parts))


def as_percent(probability: float | None) -> str:
    """A probability below 1 is not shown as certainty.

    >>> as_percent(0.881), as_percent(0.9991), as_percent(1.0)
    ('88 %', 'over 99 %', 'over 99 %')
    """
    if probability is None:
        return "unknown"
    if probability > 0.99:
        return "over 99 %"
    return "under 1 %" if probability < 0.01 else f"{100 * probability:.0f} %"
