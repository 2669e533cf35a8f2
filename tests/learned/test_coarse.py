from __future__ import annotations

import math

import pytest
import torch

from headcount.base.errors import UsageError
from headcount.learned.coarse import COARSE, coarse_factor, step

W = [-1.5, -0.25, 0.0, 0.4, 2.0]
BY_HAND = {
    "softplus": [math.log(1 + math.exp(w)) for w in W],
    "softplus-derivative": [1 / (1 + math.exp(-w)) for w in W],
    "linear": [1, 1, 1, 1, 1],
    "relu": [0, 0, 0, 1, 1],
    "clipped-relu": [0, 0, 0, 1, 0],
}


def test_every_coarse_gradient_is_tested() -> None:
    assert set(BY_HAND) == set(COARSE)


@pytest.mark.parametrize("name", COARSE)
def test_the_gradient_is_the_formula(name: str) -> None:
    # a loss F = Σ a (G - b)² on hand-made gates: ∂F/∂G = 2 a (G - b)
    a = torch.tensor([0.5, -1.0, 2.0, 3.0, -0.7])
    b = torch.tensor([0.3, 0.1, -0.2, 0.6, 0.9])
    mu = 0.01
    w = torch.tensor(W, requires_grad=True)
    gates = step(w, coarse_factor(name))
    assert gates.tolist() == [0, 0, 0, 1, 1]
    ((a * (gates - b) ** 2).sum() + mu * step(w, coarse_factor(name)).sum()).backward()
    by_gate = 2 * a * (gates.detach() - b) + mu
    torch.testing.assert_close(w.grad, by_gate * torch.tensor(BY_HAND[name]), rtol=0, atol=1e-6)


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="Did you mean 'softplus'"):
        coarse_factor("softpluss")
