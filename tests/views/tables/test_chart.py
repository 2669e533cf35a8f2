"""Small charts: a line of bars for each method, all on one scale."""

from __future__ import annotations

import io
import math

from rich.console import Console

from headcount.views.tables.chart import bars, curve_chart


def shown(*rows: tuple[str, float, float], full: float | None = 1.0) -> list[str]:
    file = io.StringIO()
    summary = [{"method": name, "ratio": ratio, "mean": mean} for name, ratio, mean in rows]
    Console(file=file, width=100, color_system=None).print(curve_chart(full, summary))
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_a_line_for_each_method() -> None:
    lines = shown(("a", 0.5, 1.0), ("a", 0.9, 0.0), ("long", 0.9, 0.5))
    assert lines == [
        "      score from 0.0000 ▁ to 1.0000 █, heads removed from 50 % to 90 %",
        "a     ██▁▁",
        "long    ▅▅",
    ]


def test_what_is_not_known_is_blank() -> None:
    assert bars([math.nan, None, 3.0], 1.0, 3.0) == "  █"
    assert bars([2.0], 2.0, 2.0) == "▁"
    assert shown(("a", 0.5, math.nan), full=None) in ([], [""])
