from __future__ import annotations

from typing import Any

from headcount.heads import Layout
from headcount.sensitivity.gradients import ImportanceResult
from headcount.views.tables.importance import page


def test_layers_and_heads(shown: Any) -> None:
    scores = ImportanceResult(
        Layout.of(encoder=[2, 1]), (0.5, 0.25, 0.125), (0.01, 0.02, 0.03), 40, 0.7
    )
    told = shown(page(scores))
    assert "40 examples, mean loss 0.7000" in " ".join(told.split())
    rows = [line.split() for line in told.splitlines()]
    assert ["layer", "0", "1", "error", "≤"] in rows
    assert ["encoder", "0", "0.500", "0.250", "0.020"] in rows
    assert ["encoder", "1", "0.125", "0.030"] in rows


def test_small_numbers_have_more_digits(shown: Any) -> None:
    scores = ImportanceResult(Layout.of(encoder=[1]), (0.001,), (0.0001,), 4, 0.7).normalized(
        "none"
    )
    assert "0.00100" in shown(page(scores))
