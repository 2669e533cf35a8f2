from __future__ import annotations

import pytest
import torch

from headcount.learned.concrete import ConcreteGates
from headcount.learned.methods import HardConcrete

ALPHA = torch.tensor([-4.0, -2.0, -0.5, 0.0, 0.7, 2.0, 5.0])


@pytest.mark.parametrize(
    "kind",
    [HardConcrete().kind(), HardConcrete(beta=0.4, gamma=-0.3, zeta=1.2).kind()],
    ids=["usual", "other"],
)
def test_the_expected_l0_is_what_sampling_gives(kind: ConcreteGates) -> None:
    random = torch.Generator().manual_seed(0)
    many = 40_000
    drawn = kind.draw(ALPHA.expand(many, -1), random, 0.0, 7)
    share = (drawn != 0).double().mean(0)
    error = (share * (1 - share) / many).sqrt().clamp_min(1e-4)
    assert ((share - kind.open_probability(ALPHA)).abs() < 5 * error).all()
    assert float(kind.count(ALPHA)) == pytest.approx(float(share.sum()), abs=0.03)
    # at test: whichever of 0 and 1 came more often
    likelier = (drawn == 1).sum(0) > (drawn == 0).sum(0)
    clear = (ALPHA.abs() > 0.3) | (kind.beta != 2 / 3)
    assert (likelier == kind.open(ALPHA, None))[clear].all()


def test_gates_are_in_the_closed_interval_and_pass_a_gradient() -> None:
    values = torch.zeros(200, requires_grad=True)
    drawn = HardConcrete().kind().draw(values, torch.Generator().manual_seed(1), 0.0, 1)
    assert 0 in drawn
    assert 1 in drawn
    assert float(drawn.detach().min()) == 0.0
    drawn.sum().backward()
    inside = (drawn > 0) & (drawn < 1)
    assert values.grad is not None
    assert (values.grad[inside] > 0).all()
    assert (values.grad[~inside] == 0).all()


@pytest.mark.parametrize("keep", [1, 3, 6])
@pytest.mark.parametrize("kind", [HardConcrete().kind(), HardConcrete(gamma=-0.4, zeta=1.1).kind()])
def test_held_at_a_number(kind: ConcreteGates, keep: int) -> None:
    held = kind.hold(ALPHA, keep)
    assert int(kind.open(held, None).sum()) == keep
    torch.testing.assert_close(held - held[0], ALPHA - ALPHA[0])  # one shift for all


def test_a_number_does_not_open_or_close_gates() -> None:
    # or the penalty would never see more gates open than it is to leave
    kind = HardConcrete().kind()
    for keep in (0, 2, 7):
        assert torch.equal(kind.open(ALPHA, keep), kind.open(ALPHA, None))
