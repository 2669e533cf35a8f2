"""What an item comes to: tables whose cells are numbers with intervals, and figures."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headcount.base.options import defined
from headcount.papers.numbers import Number, PrintedTable
from headcount.statistics import interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Cell = "Spread | Number | str | float | int | None"


@dataclass(frozen=True)
class Spread:
    """Values of several seeds as one cell: their mean with its 95 % interval."""

    values: tuple[float, ...]
    digits: int = 3

    @property
    def ends(self) -> tuple[float, float, float]:
        """Mean, and the ends of its interval."""
        return interval(self.values)

    def __str__(self) -> str:
        if not self.values:
            return ""
        mean, low, high = self.ends
        said = f"{mean:.{self.digits}f}"
        if math.isnan(low):
            return said
        return f"{said} [{low:.{self.digits}f}, {high:.{self.digits}f}]"

    def to_json(self) -> dict[str, Any]:
        """A plain dict."""
        mean, low, high = self.ends if self.values else (math.nan,) * 3
        return defined({"mean": mean, "low": low, "high": high, "seeds": len(self.values)})


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A table: our numbers, and the paper's in columns of their own."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    note: str = ""

    def cells(self) -> list[list[str]]:
        """Every cell as it is read."""
        return [[shown(cell) for cell in row] for row in self.rows]

    def to_markdown(self) -> str:
        """The table in Markdown, its note below it."""
        lines = [_line(self.columns), _line("---" for _ in self.columns)]
        lines += [_line(row) for row in self.cells()]
        note = f"\n\n{self.note}" if self.note else ""
        return f"**{self.title}**\n\n" + "\n".join(lines) + note

    def to_csv(self) -> str:
        """The table as CSV, numbers as they are shown."""
        file = io.StringIO()
        csv.writer(file).writerows([self.columns, *self.cells()])
        return file.getvalue()

    def to_json(self) -> dict[str, Any]:
        """A plain dict; a cell of several seeds has its mean and interval."""
        rows = [
            [cell.to_json() if isinstance(cell, Spread) else plain(cell) for cell in row]
            for row in self.rows
        ]
        return {
            "title": self.title, "columns": list(self.columns), "rows": rows, "note": self.note
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class DrawnItem:
    """The tables and figures of an item."""

    sheets: Sequence[Sheet] = ()
    figures: Mapping[str, Figure] = field(default_factory=dict)
    """A short name -> the figure; one without a name of its own is called by nothing."""
    notes: Sequence[str] = ()


def shown(cell: Any) -> str:
    """A cell as it is read."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    return f"{cell:.3f}" if isinstance(cell, float) else str(cell)


def plain(cell: Any) -> Any:
    """A cell as plain data."""
    if isinstance(cell, Number):
        return {"value": cell.value, "bound": cell.bound, "cell": cell.cell}
    return defined(cell)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def spread(scores: Mapping[int, float] | None, digits: int = 3) -> Spread | None:
    """One cell of the scores by seed; None where there are none."""
    return None if not scores else Spread(tuple(scores.values()), digits)


def relative(own: Mapping[int, float], full: Mapping[int, float]) -> dict[int, float]:
    """The scores as shares of the full model's, seed by seed; one full model serves all seeds."""
    only = next(iter(full.values())) if len(full) == 1 else None
    found = {}
    for seed, score in own.items():
        whole = full.get(seed, only)
        if whole:
            found[seed] = score / whole
    return found


def printed_sheet(printed: PrintedTable, title: str = "In the paper") -> Sheet | None:
    """All that the paper prints of an item, as a table; None where it prints no number."""
    if not printed.numbers:
        return None
    keys = list(dict.fromkeys(key for each in printed.numbers for key in each.at))
    rows = [
        [*(each.at.get(key, "") for key in keys), each.metric, str(each), each.unit, each.cell]
        for each in printed.numbers
    ]
    return Sheet(title=title, columns=[*keys, "metric", "value", "unit", "where"], rows=rows)


def beside(
    printed: PrintedTable, rows: Sequence[Mapping[str, Any]], metric: str | None = None
) -> tuple[list[str], list[list[Number | None]]]:
    """Columns `paper: TASK` for rows that stand for these places, where the paper has numbers."""
    tasks = list(dict.fromkeys(each.at.get("task", "") for each in printed.where(metric)))

    def number(task: str, row: Mapping[str, Any]) -> Number | None:
        at = ({"task": task} if task else {}) | dict(row)
        here = at.get("task", task) == task
        return next(iter(printed.where(metric, **at)), None) if here else None

    found = [[number(task, row) for task in tasks] for row in rows]
    there = [at for at in range(len(tasks)) if any(row[at] is not None for row in found)]
    names = [f"paper: {tasks[at]}" if tasks[at] else "paper" for at in there]
    return names, [[row[at] for at in there] for row in found]
