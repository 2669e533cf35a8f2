"""What `headcount bench` found, as a page for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from headcount.views.tables.amounts import amount, parameters, percent
from headcount.views.tables.columns import Column, FittedTable, table

if TYPE_CHECKING:
    from headcount.costs.speed import BenchPlan
    from headcount.costs.timed import BenchResult, Shape


def page(found: BenchResult) -> Group:
    """The table, with what to make of it."""
    shapes = found.shapes
    rounds = sorted({shape.rounds for shape in shapes})
    head = (
        f"{found.model}, {found.weights} weights, "
        + (f"batch {shapes[0]}, " if len(shapes) == 1 else f"{len(shapes)} shapes of inputs, ")
        + f"{found.device}, {found.threads} thread{'s' * (found.threads != 1)}, "
        + (f"{rounds[0]} rounds" if len(rounds) == 1 else f"{rounds[0]} to {rounds[-1]} rounds")
    )
    lines = [Text(line) for line in remarks(found)]
    return Group(Text(head), FittedTable(list(columns_of(shapes))), *lines)


def columns_of(shapes: Sequence[Shape]) -> Iterator[Column]:
    """One line for each way of running and shape of the inputs."""
    rows = [row for shape in shapes for row in shape.rows]

    def column(title: str, weight: int, cells: list[str], *, left: bool = False) -> Column:
        return Column(title=title, weight=weight, cells=cells, left=left)

    spread = [f"{row.speedup.low:.2f} - {row.speedup.high:.2f}" for row in rows]
    yield column("", 9, [row.name for row in rows], left=True)
    if len(shapes) > 1:
        yield column("batch", 9, [str(shape) for shape in shapes for _ in shape.rows], left=True)
    yield column("heads", 4, [str(row.heads) for row in rows])
    yield column("× as fast", 8, [f"{row.speedup.median:.2f}" for row in rows])
    yield column(
        "95 %", 6, ["" if r.kind == "dense" else s for r, s in zip(rows, spread, strict=True)]
    )
    yield column("at best", 7, [number(row.bound) for row in rows])
    yield column("ms", 3, [f"{1000 * row.seconds.median:.1f}" for row in rows])
    yield column("parameters", 1, [parameters(row.parameters) for row in rows])
    yield column("file", 2, [amount(row.memory, "B") for row in rows])


def remarks(found: BenchResult) -> Iterator[str]:
    """What the numbers mean."""
    several = len(found.shapes) > 1
    for shape in {shape.reads: shape for shape in found.shapes}.values():
        where = f"with {shape.reads}" if several else "here"
        if shape.share is not None and shape.ceiling is not None:
            yield (
                f"Heads are {percent(shape.share)} of the FLOPs {where}: without any of them the "
                f"model could be {shape.ceiling:.2f} × as fast at best."
            )
    for shape in found.shapes:
        if not shape.precise:
            where = f" of batch {shape}" if several else ""
            yield (
                f"Intervals{where} are wider than ± 10 % after {shape.rounds} rounds: this machine "
                "is busy. A longer --timing-seconds gives more rounds."
            )
    if any(row.kind == "masked" for row in found.rows):
        yield "Masked heads are computed and then multiplied by zero, which saves no time."


def ideals(found: BenchPlan) -> Table:
    """What would be timed, and the best it could come to."""
    rows = [(row.name, row.heads, number(1 / row.ideal if row.ideal else None))
            for row in found.rows]  # fmt: skip
    return table(["would time", "heads", "× as fast at best"], rows)


def number(value: float | None) -> str:
    """Two digits after the point, or a dash for what is not known."""
    return "-" if value is None else f"{value:.2f}"
