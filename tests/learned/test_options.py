from __future__ import annotations

import pytest

from headcount.errors import UsageError
from headcount.learned.options import GateOptions


@pytest.mark.parametrize("value", [0, -1e-3, float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["mu", "learning_rate"])
def test_mu_and_learning_rate_are_above_zero(name: str, value: float) -> None:
    with pytest.raises(UsageError, match="must be above 0"):
        GateOptions(**{name: value})


def test_all_mistakes_at_once() -> None:
    with pytest.raises(UsageError, match=r"mu must.*momentum must.*Did you mean 'adam'"):
        GateOptions(mu=0, momentum=1, optimizer="adamm")


def test_score_points_and_their_rows() -> None:
    with pytest.raises(UsageError, match=r"score_points must not be negative.*score_rows must"):
        GateOptions(score_points=-1, score_rows=0)


def test_schedules() -> None:
    for schedule, middle, end in (("constant", 2, 2), ("linear", 1, 0), ("cosine", 1, 0)):
        options = GateOptions(learning_rate=2, schedule=schedule)
        assert options.rate(0) == 2
        assert options.rate(0.5) == pytest.approx(middle)
        assert options.rate(1) == pytest.approx(end)
