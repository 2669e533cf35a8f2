"""The papers' items and claims as people read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headcount.papers.claims import Verdict
from headcount.papers.items import Item
from headcount.papers.power import Outlook
from headcount.papers.reproduce import ReproducedItem
from headcount.views.tables.columns import table

STYLES = {"holds": "green", "does not hold": "red", "undecided": "yellow", "not run": "dim"}


def items_table(items: Iterable[Item]) -> Table:
    """What can be reproduced."""
    rows = [
        (item.paper, item.name, item.what, " ".join(item.claims), " ".join(item.scales))
        for item in items
    ]
    return table(["paper", "item", "what it shows", "claims", "scales"], rows)


def claims_table(verdicts: Iterable[Verdict]) -> Table:
    """Every claim at every scale, with its statistic."""
    built = table(["claim", "scale", "it says", "statistic", "threshold", "verdict"], [])
    for verdict in verdicts:
        value = f"{verdict.done} of {verdict.total} runs are done" if verdict.total else ""
        for first in verdict.tested[:1]:
            value = first.interval
        claim, word = verdict.claim, Text(verdict.word, style=STYLES[verdict.word])
        built.add_row(claim.code, verdict.scale, claim.says, value, claim.threshold, word)
    return built


def power_table(outlooks: Iterable[Outlook]) -> Table:
    """What would decide each undecided claim."""
    columns = ["claim", "scale", "it says", "decided by", "threshold", "points to", "takes"]
    built = table(columns, [])
    for outlook in outlooks:
        claim, need = outlook.verdict.claim, outlook.need
        word = Text(need.word, style=STYLES[need.word])
        value = f"{need.statistic.what}: {need.statistic.interval}"
        scale = outlook.verdict.scale
        built.add_row(claim.code, scale, claim.says, value, claim.threshold, word, outlook.text)
    return built


def counts_line(counts: Mapping[str, int]) -> str:
    """`12 holds, 9 does not hold, …`."""
    return ", ".join(f"{number} {word}" for word, number in counts.items())


def reproduced_page(results: Iterable[ReproducedItem]) -> RenderableType:
    """The tables of each item, its claims, and where its files are."""
    parts: list[RenderableType] = []
    for result in results:
        item = result.item
        title = f"{item.paper} {item.name}: {item.what} ({result.scale})"
        parts.append(Text(title, style="bold"))
        if result.drawn is None:
            parts.append(Text(f"Not there yet: {result.done} of {result.total} runs are done."))
            continue
        for sheet in result.sheets:
            parts.append(table(sheet.columns, sheet.cells(), title=sheet.title))
            parts += [Text(sheet.note)] if sheet.note else []
        parts += [Text(note) for note in result.drawn.notes]
        if result.verdicts:
            parts.append(claims_table(result.verdicts))
        parts.append(Text("\n".join(str(path) for path in result.files)))
    return Group(*parts)


def summary(results: Sequence[ReproducedItem]) -> Table:
    """One line for each of many items."""
    rows = []
    for result in results:
        words = ", ".join(f"{verdict.claim.code} {verdict.word}" for verdict in result.verdicts)
        state = "drawn" if result.drawn is not None else f"{result.done} of {result.total} runs"
        rows.append((result.item.paper, result.item.name, state, words))
    return table(["paper", "item", "state", "claims"], rows)
