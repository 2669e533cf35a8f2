"""The head grid of a terminal: digits when piped, colours where there are any."""

from __future__ import annotations

import io
import math

from rich.console import Console

from headcount.heads import Head, Layout, Mask, Stack
from headcount.views.tables.grid import HeadGrid, head_grid, kept_grid

LAYOUT = Layout.of(encoder=[3, 3])


def shown(grid: HeadGrid, *, width: int = 80, colour: bool = False) -> list[str]:
    file = io.StringIO()
    system = "truecolor" if colour else None
    console = Console(file=file, width=width, color_system=system, force_terminal=colour)
    console.print(grid)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_numbers_are_tenths_of_the_way() -> None:
    grid = head_grid(LAYOUT, [0.0, 0.5, 1.0, 0.25, None, math.nan], title="worth", unit="bits")
    assert shown(grid) == ["worth", "   0  0 5 9", "   1  2 ? ?", "      0 is 0, 9 is 1 bits"]


def test_heads_that_are_gone_are_dots() -> None:
    mask = Mask.of(LAYOUT, [("encoder", 0, 0), ("encoder", 1, 2)])
    assert shown(kept_grid(mask.to_json(), "stay")) == [
        "stay", "   0  # · ·", "   1  · · #", "      · is removed",
    ]  # fmt: skip
    lines = shown(head_grid(LAYOUT, range(6), kept=mask))
    assert lines == ["   0  0 · ·", "   1  · · 9", "      0 is 0, 9 is 5, · is removed"]


def test_a_pruned_models_heads_stand_where_they_were() -> None:
    layout = Layout((Stack("encoder", (2, 1), (2, 1), (1, 1), ((0, 3), (1,))),))
    assert shown(head_grid(layout, [1, 2, 3]))[:2] == ["   0  0 · · 5", "   1  · 9 · ·"]


def test_an_uneven_model_has_blanks_not_dots() -> None:
    assert shown(kept_grid(Mask.full(Layout.of(encoder=[1, 2])), ""))[:2] == [
        "   0  #",
        "   1  # #",
    ]


def test_colours_where_the_terminal_has_them() -> None:
    lines = shown(head_grid(LAYOUT, range(6)), colour=True)
    assert "\x1b[38;2;68;1;84m██" in lines[0]
    assert "\x1b[38;2;253;231;37m██" in lines[1]
    assert "dark is 0, bright is 5" in lines[2]


def test_many_heads_are_set_closer() -> None:
    wide = Layout.of(encoder=[40])
    assert shown(kept_grid(Mask.full(wide), ""), width=60) == ["   0  " + "#" * 40]


def test_stacks_are_named_where_there_are_several() -> None:
    both = Layout.of(encoder=[1], decoder=[2])
    lines = shown(
        HeadGrid(both, {Head("encoder", 0, 0): 0, Head("decoder", 0, 1): 9}, "", ("a", "b"))
    )
    assert lines == [
        "encoder",
        "   0  0",
        "decoder",
        "   0  · 9",
        "      0 is a, 9 is b, · is removed",
    ]
