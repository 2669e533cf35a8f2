"""The timings of `headcount bench`, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from headcount.views.tables.amounts import amount, parameters, percent
from headcount.views.tables.columns import Column, FittedTable, numbers, table, words

if TYPE_CHECKING:
    from headcount.costs.speed import BenchPlan
    from headcount.costs.timed import BenchResult, Shape


def bench_table(bench: BenchResult) -> Group:
    """The table, with what to make of it."""
    shapes = bench.shapes
    rounds = sorted({shape.rounds for shape in shapes})
    head = (
        f"{bench.model}, {bench.weights} weights, "
        + (f"batch {shapes[0]}, " if len(shapes) == 1 else f"{len(shapes)} shapes of inputs, ")
        + f"{bench.device}, {bench.threads} thread{'s' * (bench.threads != 1)}, "
        + (f"{rounds[0]} rounds" if len(rounds) == 1 else f"{rounds[0]} to {rounds[-1]} rounds")
    )
    lines = [Text(line) for line in remarks(bench)]
    return Group(Text(head), FittedTable(list(columns_of(shapes))), *lines)


def columns_of(shapes: Sequence[Shape]) -> Iterator[Column]:
    """One line for each way of running and shape of the inputs."""
    rows = [row for shape in shapes for row in shape.rows]
    spread = [
        "" if row.kind == "dense" else f"{row.speedup.low:.2f} - {row.speedup.high:.2f}"
        for row in rows
    ]
    sizes = [parameters(row.parameters) for row in rows]
    yield words("", 9, [row.name for row in rows])
    if len(shapes) > 1:
        yield words("batch", 9, [str(shape) for shape in shapes for _ in shape.rows])
    yield numbers("heads", 4, [row.heads for row in rows], "d")
    yield numbers("× as fast", 8, [row.speedup.median for row in rows], ".2f")
    yield Column(title="95 %", weight=6, cells=spread)
    yield numbers("at best", 7, [row.bound for row in rows], ".2f")
    yield numbers("ms", 3, [1000 * row.seconds.median for row in rows], ".1f")
    rates = [row.tokens_per_second for row in rows]
    if any(rates):
        yield numbers("tokens/s", 7, [rate and rate.median for rate in rates], ".1f")
        yield Column(title="cache", weight=5, cells=[amount(row.cache, "B") for row in rows])
    yield Column(title="parameters", weight=1, cells=sizes)
    yield Column(title="file", weight=2, cells=[amount(row.memory, "B") for row in rows])


def remarks(bench: BenchResult) -> Iterator[str]:
    """What the numbers mean."""
    several = len(bench.shapes) > 1
    for shape in {_counted(shape): shape for shape in bench.shapes}.values():
        where = f"with {_counted(shape)}" if several else "here"
        what = "bytes read for a token" if shape.phase == "decode" else "FLOPs"
        if shape.share is not None and shape.ceiling is not None:
            yield (
                f"Heads are {percent(shape.share)} of the {what} {where}: without any of them the "
                f"model could be {shape.ceiling:.2f} × as fast at best."
            )
    for shape in bench.shapes:
        if not shape.precise:
            where = f" of batch {shape}" if several else ""
            yield (
                f"Intervals{where} are wider than ± 10 % after {shape.rounds} rounds: this machine "
                "is busy. A longer --timing-seconds gives more rounds."
            )
    if any(row.kind == "masked" for row in bench.rows):
        yield "Masked heads are computed and then multiplied by zero, which saves no time."


def _counted(shape: Shape) -> str:
    """What the share of a shape depends on: FLOPs not on the batch, the bytes of a token on it."""
    return str(shape) if shape.phase == "decode" else shape.reads


def plan_table(plan: BenchPlan) -> Table:
    """What would be timed, and the largest speedup that the FLOPs allow."""
    rows = [
        (row.name, row.heads, f"{1 / row.ideal:.2f}" if row.ideal else "-") for row in plan.rows
    ]
    return table(["would time", "heads", "× as fast at best"], rows)
