from __future__ import annotations

import pytest

from headcount.views.tables.amounts import amount, parameters, percent


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (7, "7"), (999, "999"), (999.6, "1.00 k"), (1000, "1.00 k"), (9994, "9.99 k"),
        (9996, "10.0 k"), (99_960, "100 k"), (999_400, "999 k"), (999_600, "1.00 M"),
        (2_362_368, "2.36 M"), (22_351_773_696, "22.4 G"), (3.2e12, "3.20 T"), (5e15, "5000 T"),
        (None, "-"),
    ],
)  # fmt: skip
def test_three_digits(value: float | None, text: str) -> None:
    assert amount(value) == text


def test_units() -> None:
    assert (amount(9_449_472, "B"), amount(12, "B")) == ("9.45 MB", "12 B")
    assert parameters(5_930_000_000) == "5.93 B"
    assert (percent(0.3513), percent(None)) == ("35.1 %", "-")
