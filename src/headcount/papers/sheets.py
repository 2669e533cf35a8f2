"""What an item comes to: tables whose cells are numbers with intervals, and figures."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from headcount.base.options import defined
from headcount.papers.numbers import Number, PrintedTable
from headcount.statistics import interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Spread:
    """Values of several seeds as one cell: their mean with its 95 % interval."""

    values: tuple[float, ...]
    digits: int = 3

    def __str__(self) -> str:
        if not self.values:
            return ""
        mean, low, high = (f"{value:.{self.digits}f}" for value in interval(self.values))
        return f"{mean} [{low}, {high}]" if low != "nan" else mean

    def to_json(self) -> dict[str, object]:
        """A plain dict."""
        mean, low, high = interval(self.values) if self.values else (math.nan,) * 3
        return defined({"mean": mean, "low": low, "high": high, "seeds": len(self.values)})


Cell: TypeAlias = Spread | Number | str | float | int | None


@dataclass(frozen=True)
class Sheet:
    """A table: our numbers, and the paper's in columns of their own."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""

    def beside(
        self,
        printed: PrintedTable,
        places: Sequence[Mapping[str, object]],
        metric: str | None = None,
    ) -> Sheet:
        """The same with columns `paper: TASK`, for rows that stand for these places of the paper's.

        A task has no column where the paper has no number for any row.
        """
        numbers: dict[str, list[Number | None]] = {}
        for task in dict.fromkeys(str(one.at.get("task", "")) for one in printed.where(metric)):
            column = [_number(printed, metric, task, at) for at in places]
            if any(column):
                numbers[task] = column
        return replace(
            self,
            columns=[*self.columns, *(f"paper: {task}" if task else "paper" for task in numbers)],
            rows=[[*row, *more] for row, *more in zip(self.rows, *numbers.values(), strict=True)],
        )

    def cells(self) -> list[list[str]]:
        """Every cell as it is read."""
        return [[shown(cell) for cell in row] for row in self.rows]

    def to_markdown(self) -> str:
        """The table in Markdown, its note below it."""
        table = [self.columns, ["---"] * len(self.columns), *self.cells()]
        note = f"\n\n{self.note}" if self.note else ""
        return f"**{self.title}**\n\n" + "\n".join(map(markdown_line, table)) + note

    def to_csv(self) -> str:
        """The table as CSV, numbers as they are shown."""
        file = io.StringIO()
        csv.writer(file).writerows([self.columns, *self.cells()])
        return file.getvalue()

    def to_json(self) -> dict[str, object]:
        """A plain dict; a cell of several seeds has its mean and interval."""
        rows = [
            [cell.to_json() if isinstance(cell, Spread | Number) else defined(cell) for cell in row]
            for row in self.rows
        ]
        return vars(self) | {"columns": list(self.columns), "rows": rows}


@dataclass(frozen=True)
class DrawnItem:
    """The tables and figures of an item."""

    sheets: Sequence[Sheet] = ()
    figures: Mapping[str, Figure] = field(default_factory=dict)
    """A short name -> the figure; one without a name of its own is called by nothing."""
    notes: Sequence[str] = ()


def shown(cell: Cell) -> str:
    """A cell as it is read."""
    if defined(cell) is None:
        return ""
    return f"{cell:.3f}" if isinstance(cell, float) else str(cell)


def markdown_line(cells: Iterable[str]) -> str:
    """A row of a table in Markdown.

    >>> markdown_line(["a|b", "c"])
    '| a\\\\|b | c |'
    """
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def spread(scores: Mapping[int, float] | None, digits: int = 3) -> Spread | None:
    """One cell of the scores by seed; None where there are none."""
    return None if not scores else Spread(tuple(scores.values()), digits)


def relative(scores: Mapping[int, float], full: Mapping[int, float]) -> dict[int, float]:
    """The scores as shares of the full model's, seed by seed; one full model serves all seeds."""
    only = next(iter(full.values())) if len(full) == 1 else None
    wholes = {seed: full.get(seed, only) for seed in scores}
    return {seed: scores[seed] / whole for seed, whole in wholes.items() if whole}


def printed_sheet(printed: PrintedTable) -> Sheet | None:
    """All that the paper prints of an item, as a table; None where it prints no number."""
    if not printed.numbers:
        return None
    keys = list(dict.fromkeys(key for number in printed.numbers for key in number.at))
    rows = [
        [*(one.at.get(key, "") for key in keys), one.metric, str(one), one.unit, one.cell]
        for one in printed.numbers
    ]
    return Sheet("In the paper", [*keys, "metric", "value", "unit", "where"], rows)


def _number(
    printed: PrintedTable, metric: str | None, task: str, at: Mapping[str, object]
) -> Number | None:
    if at.get("task", task) != task:
        return None
    numbers = printed.where(metric, **(({"task": task} if task else {}) | dict(at)))
    return next(iter(numbers), None)
