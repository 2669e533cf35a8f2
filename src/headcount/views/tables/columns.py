"""What tables are built of: a plain one, and one whose least telling columns may be left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from headcount.text import printable


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None) -> Table:
    """A plain table; numbers are set to the right."""
    rows = [list(row) for row in rows]
    title = printable(title) if title else None
    built = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for at, column in enumerate(columns):
        numbers = bool(rows) and all(isinstance(row[at], int | float) for row in rows)
        built.add_column(printable(column), justify="right" if numbers else "left")
    for row in rows:
        built.add_row(*("" if cell is None else printable(str(cell), lines=True) for cell in row))
    return built


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a table."""

    title: str
    cells: Sequence[str]
    weight: int
    """What is light goes first when the terminal is narrow."""
    left: bool = False
    """Words are set to the left, numbers to the right."""


@dataclass(frozen=True)
class Fitted:
    """The columns as a table that fits where it is shown, and a line that names those that do not.

    A gap is left before the row number `section`.
    """

    columns: Sequence[Column]
    section: int | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = fitting(self.columns, options.max_width, console)
        yield built(shown, section=self.section)
        if hidden := [column.title for column in self.columns if column not in shown]:
            yield Text(f"Too narrow to show: {', '.join(hidden)}")


def fitting(columns: Sequence[Column], width: int, console: Console) -> list[Column]:
    """The columns whose table fits into `width`, two at the least."""
    unlimited = console.options.update(width=10_000)
    shown = list(columns)
    while len(shown) > 2:
        if Measurement.get(console, unlimited, built(shown)).maximum <= width:
            break
        shown.remove(min(shown, key=lambda column: column.weight))
    return shown


def built(columns: Sequence[Column], *, section: int | None = None) -> Table:
    """The table of these columns; no cell is ever broken into lines."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column.title, justify="left" if column.left else "right", no_wrap=True)
    for number, row in enumerate(zip(*(column.cells for column in columns), strict=True)):
        if number == section:
            table.add_section()
        table.add_row(*map(printable, row))
    return table
