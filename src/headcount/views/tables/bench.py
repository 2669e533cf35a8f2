"""What `headcount bench` found, as a page for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from headcount.views.tables.amounts import amount, parameters, percent
from headcount.views.tables.columns import Column, Fitted, table

if TYPE_CHECKING:
    from headcount.models.bench import Bench, Row
    from headcount.models.speed import Plan


def page(found: Bench) -> Group:
    """The table, with what to make of it."""
    head = (
        f"{found.model}, {found.weights} weights, batch {found.batch} x {found.reads}, "
        f"{found.device}, {found.threads} threads, {found.rounds} rounds"
    )
    lines = [Text(line) for line in remarks(found)]
    return Group(Text(head), Fitted(list(columns_of(found.rows))), *lines)


def columns_of(rows: tuple[Row, ...]) -> Iterator[Column]:
    """One line for each way of running."""

    def column(title: str, weight: int, cells: list[str], *, left: bool = False) -> Column:
        return Column(title=title, weight=weight, cells=cells, left=left)

    spread = [f"{number(row.ratio.low)} - {number(row.ratio.high)}" for row in rows]
    yield column("", 9, [row.name for row in rows], left=True)
    yield column("heads", 4, [str(row.heads) for row in rows])
    yield column("time / dense", 8, [number(row.ratio.median) for row in rows])
    yield column(
        "95 %", 6, ["" if r.kind == "dense" else s for r, s in zip(rows, spread, strict=True)]
    )
    yield column("ideal", 7, [number(row.ideal) for row in rows])
    removed = [number(row.over_ideal) if row.kind == "removed" else "" for row in rows]
    yield column("/ ideal", 5, removed)
    yield column("ms", 3, [f"{1000 * row.seconds.median:.1f}" for row in rows])
    yield column("parameters", 1, [parameters(row.parameters) for row in rows])
    yield column("file", 2, [amount(row.memory, "B") for row in rows])


def remarks(found: Bench) -> Iterator[str]:
    """What the numbers mean."""
    if found.share is not None and found.ceiling is not None:
        yield (
            f"Heads are {percent(found.share)} of the FLOPs here: removing every one leaves "
            f"{1 - found.share:.3f} of the time at best ({found.ceiling:.2f} x as fast)."
        )
    if any(row.kind == "masked" for row in found.rows):
        yield "Masked heads are computed and then multiplied by zero, which saves no time."


def ideals(found: Plan) -> Table:
    """What would be timed, and the best it could come to."""
    rows = [(row.name, row.heads, number(row.ideal)) for row in found.rows]
    return table(["would time", "heads", "ideal time / dense"], rows)


def number(value: float | None) -> str:
    """Three digits after the point, or a dash for what is not known."""
    return "-" if value is None else f"{value:.3f}"
