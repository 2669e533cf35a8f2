"""The papers' items and claims as people read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headcount.papers.claims import Verdict
from headcount.papers.items import Item
from headcount.papers.reproduce import ReproducedItem
from headcount.views.tables.columns import table

STYLES = {"holds": "green", "does not hold": "red", "undecided": "yellow", "not run": "dim"}


def items_table(items: Iterable[Item]) -> Table:
    """What can be reproduced."""
    rows = [
        (each.paper, each.name, each.what, " ".join(each.claims), " ".join(each.scales))
        for each in items
    ]
    return table(["paper", "item", "what it shows", "claims", "scales"], rows)


def interval_of(value: float, low: float, high: float) -> str:
    """`0.926 [0.908, 0.943]`.

    >>> interval_of(0.5, float("nan"), float("nan")), interval_of(0.5, 0.25, 0.75)
    ('0.5', '0.5 [0.25, 0.75]')
    """
    ends = "" if low != low or high != high else f" [{low:.3g}, {high:.3g}]"
    return f"{value:.3g}{ends}"


def claims_table(verdicts: Sequence[Verdict]) -> Table:
    """Every claim at every scale, with its statistic."""
    built = table(["claim", "scale", "it says", "statistic", "threshold", "verdict"], [])
    for each in verdicts:
        said = ""
        if each.tested:
            first = each.tested[0]
            said = interval_of(first.value, first.low, first.high)
        elif each.total:
            said = f"{each.done} of {each.total} runs are done"
        word = Text(each.word, style=STYLES[each.word])
        built.add_row(
            each.claim.code, each.scale, each.claim.says, said, each.claim.threshold, word
        )
    return built


def counts_line(counts: Mapping[str, int]) -> str:
    """`12 hold, 9 do not, …`."""
    return ", ".join(f"{number} {word}" for word, number in counts.items())


def reproduced_page(found: Sequence[ReproducedItem]) -> RenderableType:
    """The tables of each item, its claims, and where its files are."""
    parts: list[RenderableType] = []
    for each in found:
        title = f"{each.item.paper} {each.item.name}: {each.item.what} ({each.scale})"
        parts.append(Text(title, style="bold"))
        if each.drawn is None:
            parts.append(Text(f"Not there yet: {each.done} of {each.total} runs are done."))
            continue
        for sheet in each.sheets:
            parts.append(table(sheet.columns, sheet.cells(), title=sheet.title))
            parts += [Text(sheet.note)] if sheet.note else []
        parts += [Text(note) for note in each.drawn.notes]
        if each.verdicts:
            parts.append(claims_table(each.verdicts))
        parts.append(Text("\n".join(str(path) for path in each.files)))
    return Group(*parts)


def summary(found: Sequence[ReproducedItem]) -> Table:
    """One line for each of many items."""
    rows: list[tuple[Any, ...]] = []
    for each in found:
        words = ", ".join(f"{verdict.claim.code} {verdict.word}" for verdict in each.verdicts)
        state = "drawn" if each.drawn is not None else f"{each.done} of {each.total} runs"
        rows.append((each.item.paper, each.item.name, state, words))
    return table(["paper", "item", "state", "claims"], rows)
