"""Heads per layer in short, as they are written and read: 777322, 12x8 or 12,10,7."""

from __future__ import annotations

import re
from collections.abc import Sequence

from headcount.base.errors import UsageError
from headcount.base.text import short


def write_counts(counts: Sequence[int]) -> str:
    """Heads per layer in short: digits when they fit, commas when not.

    >>> write_counts([7, 7, 3]), write_counts([12, 7]), write_counts([12])
    ('773', '12,7', '12,')
    """
    if all(count < 10 for count in counts):
        return "".join(map(str, counts))
    # one layer of 12 heads: '12' alone would be two layers
    return ",".join(map(str, counts)) + "," * (len(counts) == 1)


def span(counts: Sequence[int]) -> str:
    """The smallest and the largest count, or the one that all are."""
    few, many = min(counts, default=0), max(counts, default=0)
    return str(few) if few == many else f"{few} to {many}"


def read_counts(text: str) -> list[int]:
    """The inverse of `write_counts`; `12x8` is 12 layers of 8 heads."""
    if match := re.fullmatch(r"(\d{1,5})x(\d{1,5})", text):
        return [int(match[2])] * int(match[1])
    if re.fullmatch(r"\d{1,5}(,\d{1,5})+,?|\d{1,5},", text):
        return [int(part) for part in text.rstrip(",").split(",")]
    if re.fullmatch(r"\d*", text):
        return [int(digit) for digit in text]
    raise UsageError(f"{short(text)} is not heads per layer; write 777322, 12x8 or 12,10,7.")
