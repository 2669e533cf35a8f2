from __future__ import annotations

import pytest

from headcount.base.errors import UsageError
from headcount.studies.search.bounds import CostBudget, MaxDrop, read_bound, read_budget, read_drop


@pytest.mark.parametrize(
    ("text", "drop", "said", "allowed"),
    [
        ("1%", MaxDrop(0.01, True), "1 %", 0.008),
        ("0.5 %", MaxDrop(0.005, True), "0.5 %", 0.004),
        ("0.01", MaxDrop(0.01, False), "0.01", 0.01),
        (0.02, MaxDrop(0.02, False), "0.02", 0.02),
        ("0", MaxDrop(0.0, False), "0", 0.0),
        ("0%", MaxDrop(0.0, True), "0 %", 0.0),
    ],
)
def test_a_loss_is_relative_or_absolute(
    text: str, drop: MaxDrop, said: str, allowed: float
) -> None:
    found = read_drop(text)
    assert (found, str(found)) == (drop, said)
    assert found.allowed(-0.8) == pytest.approx(allowed)


@pytest.mark.parametrize(
    ("text", "problem"),
    [("much", "1%, 0.01 or 0"), ("%", "not '%'"), ("nan", "'nan'"), ("inf%", "'inf%'"),
     ("-1%", "not negative"), ("-0.5", "not negative"), ("1% ish", "1%, 0.01 or 0")],
)  # fmt: skip
def test_a_loss_that_cannot_be_read(text: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        read_drop(text)


@pytest.mark.parametrize(
    ("kind", "text", "budget", "limit"),
    [
        ("latency", "0.8x", CostBudget("latency", 0.8, True), 8.0),
        ("latency", "12ms", CostBudget("latency", 0.012, False), 0.012),
        ("latency", "0.5 s", CostBudget("latency", 0.5, False), 0.5),
        ("parameters", "20M", CostBudget("parameters", 2e7, False), 2e7),
        ("parameters", "1500", CostBudget("parameters", 1500.0, False), 1500.0),
        ("cache", "9kB", CostBudget("cache", 9000.0, False), 9000.0),
        ("cache", "0.5×", CostBudget("cache", 0.5, True), 5.0),
    ],
)  # fmt: skip
def test_a_budget_is_a_share_or_an_amount(kind, text, budget, limit) -> None:
    found = read_budget(kind, text)
    assert found.kind == budget.kind
    assert found.relative == budget.relative
    assert found.value == pytest.approx(budget.value)
    assert found.limit(10.0) == pytest.approx(limit)


@pytest.mark.parametrize(
    ("kind", "text", "problem"),
    [("latency", "20M", "0.8x of the whole model's time, or 12ms, not '20M'"),
     ("latency", "12", "12ms"), ("parameters", "12ms", "or 20M"), ("cache", "x", "bytes"),
     ("latency", "-2ms", "above 0"), ("cache", "0x", "above 0"), ("cache", "infB", "bytes")],
)  # fmt: skip
def test_a_budget_that_cannot_be_read(kind, text: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        read_budget(kind, text)


def test_one_bound_at_a_time() -> None:
    assert read_bound() is None
    assert read_bound(max_drop="1%") == MaxDrop(0.01, True)
    assert read_bound(max_cache="0.5x") == CostBudget("cache", 0.5, True)
    with pytest.raises(UsageError, match="--max-drop and --max-latency were given"):
        read_bound(max_drop=0, max_latency="0.8x")
    with pytest.raises(UsageError, match="--max-parameters and --max-cache"):
        read_bound(max_parameters="1M", max_cache="1kB")
