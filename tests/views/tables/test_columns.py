from __future__ import annotations

import pytest
from rich.console import Console

from headcount.views.tables.columns import Column, FittedTable, built, fitting, table

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
        console.print(FittedTable(COLUMNS, section=1))
    lines = [line.split() for line in captured.get().splitlines()]
    assert lines[1:] == [lines[1], lines[2], ["a", "x" * 30, "1"], [], ["total", "22"], []]
    assert lines[1] == ["name", "long", "n"]


def test_columns_of_different_lengths_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="shorter"):
        built([COLUMNS[0], Column(title="odd", cells=["1"], weight=1)])


def test_what_a_narrow_terminal_hides_is_named() -> None:
    console = Console(width=40)
    with console.capture() as captured:
        console.print(FittedTable(COLUMNS))
    assert "Too narrow to show: long" in captured.get()
    assert "x" * 30 not in captured.get()


def lines_of(page: object, width: int) -> list[str]:
    console = Console(width=width)
    with console.capture() as captured:
        console.print(page)
    return [line.rstrip() for line in captured.get().splitlines()]


WIDE = [
    ("surgeon", kept, seed, 60, "0.7697", "−0.0121", f"[−0.0{kept}64, +0.0{seed}19]", "98.7 %",
     "not told apart; 7 seeds would")
    for kept in (23, 21) for seed in (0, 1)
]  # fmt: skip
TITLES = ["method", "heads", "seed", "rows", "recall@1", "from all heads", "95 % interval",
          "chance", "verdict"]  # fmt: skip


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_wide_table_folds_and_no_number_is_cut(width: int) -> None:
    page = table(TITLES, WIDE, title="tried")
    page.caption = "a caption"
    lines = lines_of(page, width)
    assert all(len(line) <= width for line in lines)
    text = "\n".join(lines)
    assert "…" not in text
    for row in WIDE:
        assert any(str(row[6]) in line for line in lines)
    assert all(title in text for title in TITLES)
    heads = [line.split() for line in lines if line.split()[:3] == ["method", "heads", "seed"]]
    assert len(heads) >= 2  # each part begins with what tells rows apart
    assert (text.count("tried"), text.count("a caption")) == (1, 1)
    assert lines.index("tried") == 0


def test_a_table_that_fits_is_not_folded() -> None:
    lines = lines_of(table(TITLES, WIDE), 200)
    assert sum("method" in line for line in lines) == 1
    assert sum("surgeon" in line for line in lines) == len(WIDE)


def test_prose_is_broken_between_words_and_names_are_not() -> None:
    words = "the interval is over clusterings of one matrix of one model and nothing else at all"
    lines = lines_of(
        table(["code", "value", "what"], [("RA10", "0.0208 [0.00239, 0.0393]", words)]), 70
    )
    assert sum("0.0208 [0.00239, 0.0393]" in line for line in lines) == 1
    assert " ".join(" ".join(line.split()) for line in lines).count("clusterings") == 1
    assert all(len(line) <= 70 for line in lines)
    assert sum("code" in line for line in lines) == 1  # one part: the prose makes room
