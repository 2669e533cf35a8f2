from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headcount.learned.methods import Subset
from headcount.pruning.topk import soft_top


@given(
    values=st.lists(st.floats(-1e4, 1e4, width=32), min_size=1, max_size=40),
    share=st.floats(0, 1),
    done=st.floats(0, 1),
    seed=st.integers(0, 2**31),
)
def test_always_exactly_k(values: list[float], share: float, done: float, seed: int) -> None:
    w = torch.tensor(values, requires_grad=True)
    keep = max(1, round(share * len(values)))
    random = torch.Generator().manual_seed(seed)
    drawn = Subset().kind().draw(w, random, done, keep)
    assert set(drawn.tolist()) <= {0.0, 1.0}
    assert int(drawn.sum()) == keep
    assert int(Subset().kind().open(w.detach(), keep).sum()) == keep
    drawn.mul(torch.arange(len(values))).sum().backward()
    assert w.grad is not None
    assert torch.isfinite(w.grad).all()


def test_backwards_is_the_derivative_of_a_soft_set_of_the_same_size() -> None:
    x = torch.tensor([1.3, -0.4, 0.2, 2.0, -1.1], dtype=torch.float64)
    assert float(soft_top(x, 2).sum()) == pytest.approx(2.0, abs=1e-9)
    pull = torch.tensor([0.5, -1.0, 2.0, 0.1, 0.3], dtype=torch.float64)
    kind = Subset(hot=1.0, cold=1.0).kind()
    noise = torch.Generator().manual_seed(3)
    w = x.clone().requires_grad_()
    (kind.draw(w, noise, 0.0, 2) * pull).sum().backward()
    u = torch.rand(5, generator=torch.Generator().manual_seed(3)).clamp(1e-9, 1 - 1e-7)
    at = x - (-u.log()).log()
    numeric = []
    for place in range(5):
        nudge = torch.zeros(5, dtype=torch.float64)
        nudge[place] = 1e-5
        change = soft_top(at + nudge, 2) - soft_top(at - nudge, 2)
        numeric.append(float((change * pull).sum() / 2e-5))
    torch.testing.assert_close(
        w.grad, torch.tensor(numeric, dtype=torch.float64), rtol=1e-4, atol=1e-6
    )


def test_colder_draws_are_nearer_to_the_best() -> None:
    w = torch.linspace(1, -1, 20)
    random = torch.Generator().manual_seed(0)
    best = Subset().kind().open(w, 5)
    hit = {
        done: sum(float(Subset().kind().draw(w, random, done, 5)[best].sum()) for _ in range(200))
        for done in (0.0, 1.0)
    }
    assert hit[1.0] > 1.3 * hit[0.0]
