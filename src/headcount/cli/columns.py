"""Tables that stay readable: on a narrow terminal the least telling columns are left out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Group
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from headcount.cli.common import stdout
from headcount.text import printable


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a table."""

    title: str
    cells: Sequence[str]
    weight: int
    """What is light goes first when the terminal is narrow."""
    left: bool = False
    """Words are set to the left, numbers to the right."""


def fitted(columns: Sequence[Column], *, section: int | None = None) -> Group:
    """The columns as a table that fits the terminal, and a line that names those that do not.

    A gap is left before the row number `section`. Into a file or a pipe, all columns go.
    """
    width = stdout().width if sys.stdout.isatty() else None
    shown = fitting(columns, width)
    hidden = [column.title for column in columns if column not in shown]
    note = [Text(f"Too narrow to show: {', '.join(hidden)}")] if hidden else []
    return Group(built(shown, section=section), *note)


def fitting(columns: Sequence[Column], width: int | None) -> list[Column]:
    """The columns whose table fits into `width`, two at the least."""
    console = stdout()
    unlimited = console.options.update(width=10_000)
    shown = list(columns)
    while width is not None and len(shown) > 2:
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
