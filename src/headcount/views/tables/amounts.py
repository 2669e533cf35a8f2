"""Numbers for people: `2.36 M`, `9.45 MB`, `0.8531`, `[0.8312, 0.8754]`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

Row = Mapping[str, Any]
"""A row of a summary, a score with its interval, or a part of a record, as JSON has it."""
STEPS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
COUNTS = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))


def parameters(count: int) -> str:
    """A number of parameters, in billions where others would say giga.

    >>> parameters(5_930_000_000)
    '5.93 B'
    """
    return amount(count, steps=COUNTS)


def amount(
    value: float | None, unit: str = "", *, steps: tuple[tuple[float, str], ...] = STEPS
) -> str:
    """Three digits and a decimal prefix; a dash for what is not known.

    >>> amount(2362368), amount(9449472, "B"), amount(999_999), amount(12), amount(None)
    ('2.36 M', '9.45 MB', '1.00 M', '12', '-')
    """
    if value is None:
        return "-"
    for size, prefix in steps:
        # a number that would round up to 1000 belongs to the next prefix
        if value >= size * 0.9995:
            scaled = value / size
            digits = 2 if scaled < 9.995 else 1 if scaled < 99.95 else 0
            return f"{scaled:.{digits}f} {prefix}{unit}"
    return f"{value:.0f} {unit}".rstrip()


def percent(share: float | None) -> str:
    """A share with one digit.

    >>> percent(0.3513), percent(None)
    ('35.1 %', '-')
    """
    return "-" if share is None else f"{100 * share:.1f} %"


def scored(value: float | None) -> str:
    """A score with four digits.

    >>> scored(0.85312), scored(None)
    ('0.8531', 'undefined')
    """
    return "undefined" if value is None or math.isnan(value) else f"{value:.4f}"


def interval(row: Row, digits: int = 4) -> str:
    """The ends of an interval; where there is none, why, as far as that is known.

    >>> interval({"low": 0.8, "high": 0.9}, 2), interval({"low": None, "high": None})
    ('[0.80, 0.90]', '')
    >>> interval({"low": None, "high": None, "no_interval": "it takes 60 rows"})
    'none: it takes 60 rows'
    """
    low = row["low"]
    if low is None or math.isnan(low):
        reason = row.get("no_interval")
        return f"none: {reason}" if reason else ""
    return f"[{low:.{digits}f}, {row['high']:.{digits}f}]"
