from __future__ import annotations

import pytest
from rich.console import Console

from headcount.views.tables.columns import Column, Fitted, built, fitting

COLUMNS = [
    Column(title="name", cells=["a", "total"], weight=9, left=True),
    Column(title="long", cells=["x" * 30, ""], weight=1),
    Column(title="n", cells=["1", "22"], weight=5),
]


@pytest.mark.parametrize(
    ("width", "shown"),
    [(1000, ["name", "long", "n"]), (60, ["name", "long", "n"]), (40, ["name", "n"]), (3, 2)],
)
def test_the_lightest_column_goes_first(width: int, shown: list[str] | int) -> None:
    found = [column.title for column in fitting(COLUMNS, width, Console())]
    assert (len(found) if isinstance(shown, int) else found) == shown


def test_it_fits_to_the_column() -> None:
    console = Console(width=1000)
    with console.capture() as captured:
        console.print(built(COLUMNS))
    needed = max(len(line.rstrip()) for line in captured.get().splitlines()) + 1
    assert len(fitting(COLUMNS, needed, console)) == 3
    assert len(fitting(COLUMNS, needed - 1, console)) == 2


def test_into_a_pipe_everything_goes_with_a_gap_before_the_totals() -> None:
    console = Console(width=1000)
    with console.capture() as captured:
        console.print(Fitted(COLUMNS, section=1))
    lines = [line.split() for line in captured.get().splitlines()]
    assert lines[1:] == [lines[1], lines[2], ["a", "x" * 30, "1"], [], ["total", "22"], []]
    assert lines[1] == ["name", "long", "n"]


def test_columns_of_different_lengths_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="shorter"):
        built([COLUMNS[0], Column(title="odd", cells=["1"], weight=1)])


def test_what_a_narrow_terminal_hides_is_named() -> None:
    console = Console(width=40)
    with console.capture() as captured:
        console.print(Fitted(COLUMNS))
    assert "Too narrow to show: long" in captured.get()
    assert "x" * 30 not in captured.get()
