"""What tables are built of: one that folds where it is too wide, one that leaves columns out."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from headcount.base.text import printable

Cells = Sequence[object]
"""A row; None is a blank cell."""
PROSE = 32
"""Cells of more characters are text that may be broken into lines."""


def table(columns: Sequence[str], rows: Iterable[Cells], title: str | None = None) -> Table:
    """A plain table that folds on a narrow terminal; numbers are set to the right."""
    rows = [list(row) for row in rows]
    title = printable(title) if title else None
    built = FoldedTable(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for at, column in enumerate(columns):
        numbers = bool(rows) and all(isinstance(row[at], int | float) for row in rows)
        built.add_column(printable(column), justify="right" if numbers else "left")
    for row in rows:
        built.add_row(*("" if cell is None else printable(str(cell), lines=True) for cell in row))
    return built


class FoldedTable(Table):
    """A table that is shown in parts, one below the other, where it is too wide.

    Every part begins with the first columns, three at most, in which all rows differ. Only prose is
    broken into lines: a number or an interval stays whole.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        unlimited = console.options.update(width=10_000)
        if Measurement.get(console, unlimited, self).maximum > options.max_width:
            yield from self._parts(console, options.max_width)
        else:
            yield from super().__rich_console__(console, options)

    def _parts(self, console: Console, width: int) -> Iterator[Table]:
        unlimited = console.options.update(width=10_000)
        cells = [[str(cell) for cell in column.cells] for column in self.columns]
        prose = {at for at, col in enumerate(cells) if max(map(cell_len, col), default=0) > PROSE}

        def fits(columns: Sequence[int], room: int) -> bool:
            part = self._part(columns, prose)
            for at, column in zip(columns, part.columns, strict=True):
                column.max_width = PROSE if at in prose else None
            return Measurement.get(console, unlimited, part).maximum <= room

        distinct = (len(set(zip(*cells[:count], strict=True))) for count in (1, 2, 3))
        key = next((at for at, rows in enumerate(distinct, 1) if rows == len(cells[0])), 1)
        while key > 1 and not fits(range(key), width // 2):
            key -= 1
        parts: list[list[int]] = [[]]
        for at in range(key, len(cells)):
            if parts[-1] and not fits([*range(key), *parts[-1], at], width):
                parts.append([])
            parts[-1].append(at)
        for number, columns in enumerate(parts):
            part = self._part([*range(key), *columns], prose)
            part.title = self.title if number == 0 else None
            part.caption = self.caption if number == len(parts) - 1 else None
            yield part

    def _part(self, places: Sequence[int], prose: Container[int] = ()) -> Table:
        """Some columns as a table; only prose is broken into lines."""
        part = Table(box=self.box, title=self.title, pad_edge=self.pad_edge)
        part.title_justify, part.caption_justify = self.title_justify, self.caption_justify
        chosen = [self.columns[at] for at in places]
        for at, column in zip(places, chosen, strict=True):
            part.add_column(column.header, justify=column.justify, no_wrap=at not in prose)
        for row, cells in zip(self.rows, zip(*(c.cells for c in chosen), strict=True), strict=True):
            part.add_row(*cells, style=row.style, end_section=row.end_section)
        return part


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a table."""

    title: str
    cells: Sequence[str]
    weight: int
    """The lightest column is left out first when the terminal is narrow."""
    left: bool = False
    """Words are set to the left, numbers to the right."""


def words(title: str, weight: int, cells: Sequence[str]) -> Column:
    """A column of words."""
    return Column(title=title, weight=weight, cells=cells, left=True)


def numbers(title: str, weight: int, values: Iterable[float | None], form: str = ".3f") -> Column:
    """A column of numbers; a dash for those that are missing or undefined."""
    cells = ["-" if value is None or value != value else f"{value:{form}}" for value in values]
    return Column(title=title, weight=weight, cells=cells)


@dataclass(frozen=True)
class FittedTable:
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
