from __future__ import annotations

import pytest
import torch

from headcount.learned.methods import StraightThrough
from headcount.learned.straight import StepGates


def test_every_gate_starts_open() -> None:
    values = StepGates(coarse="linear", mean=0.05, spread=0.5).start(
        500, torch.Generator().manual_seed(0)
    )
    assert (values > 0).all()
    assert 0.3 < float(values.mean()) < 0.6  # what is left of the normal, not its centre
    again = StepGates(coarse="linear", mean=0.05, spread=0.5).start(
        500, torch.Generator().manual_seed(0)
    )
    assert torch.equal(values, again)


@pytest.mark.parametrize("keep", [0, 1, 4, 6])
def test_held_at_a_number(keep: int) -> None:
    values = torch.tensor([0.3, -2.0, 5.0, 0.1, -0.7, 1.0])
    held = StraightThrough().kind().hold(values, keep)
    assert int((held > 0).sum()) == keep
    torch.testing.assert_close(held - held[0], values - values[0])
