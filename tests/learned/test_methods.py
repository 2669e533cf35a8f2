from __future__ import annotations

import pytest

from headcount.base.errors import UsageError
from headcount.learned.methods import HardConcrete, StraightThrough, Subset


@pytest.mark.parametrize("value", [0, -1e-3, float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["mu", "gate_lr"])
def test_mu_and_learning_rate_are_above_zero(name: str, value: float) -> None:
    with pytest.raises(UsageError, match="must be above 0"):
        StraightThrough(**{name: value})


def test_all_mistakes_at_once() -> None:
    with pytest.raises(UsageError, match=r"mu must.*momentum must.*Did you mean 'adam'"):
        StraightThrough(mu=0, gate_momentum=1, gate_optimizer="adamm")


def test_score_points_and_their_rows() -> None:
    with pytest.raises(UsageError, match=r"score_points must not be negative.*score_rows must"):
        Subset(score_points=-1, score_rows=0)


def test_schedules() -> None:
    for schedule, middle, end in (("constant", 2, 2), ("linear", 1, 0), ("cosine", 1, 0)):
        options = Subset(gate_lr=2, gate_schedule=schedule)
        assert options.rate(0) == 2
        assert options.rate(0.5) == pytest.approx(middle)
        assert options.rate(1) == pytest.approx(end)


def test_what_each_kind_of_gates_refuses() -> None:
    for wrong in ({"beta": 0}, {"gamma": 0.1}, {"zeta": 1.0}):
        with pytest.raises(UsageError, match="beta above 0, gamma below 0 and zeta above 1"):
            HardConcrete(**wrong)
    with pytest.raises(UsageError, match="temperatures are above 0"):
        Subset(cold=0)
    with pytest.raises(UsageError, match="gate_start and gate_spread must be above 0"):
        StraightThrough(gate_start=0)
    with pytest.raises(UsageError, match="no coarse gradient 'tanh'"):
        StraightThrough(coarse="tanh")
