from __future__ import annotations

import pytest
import torch

from headcount.learned.kinds import GateKind
from headcount.learned.methods import HardConcrete, StraightThrough, Subset

KINDS = [StraightThrough().kind(), HardConcrete().kind(), Subset().kind()]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_kind_does_what_the_keeper_asks(kind: GateKind) -> None:
    random = torch.Generator().manual_seed(0)
    values = kind.start(6, random).requires_grad_()
    gates = kind.draw(values, random, 0.5, 3)
    assert gates.shape == values.shape == (6,)
    assert ((gates >= 0) & (gates <= 1)).all()
    (gates.sum() + kind.count(values)).backward()
    assert values.grad is not None
    assert torch.isfinite(values.grad).all()
    values = torch.arange(6.0) / 10
    held = kind.hold(values, 2)
    assert int(kind.open(held, 2).sum()) == 2
    assert set(held.topk(2).indices.tolist()) == {4, 5}
    other = kind.draw(values, random, 0.5, 3)
    assert kind.noisy or torch.equal(other, kind.draw(values, random, 0.5, 3))
