from __future__ import annotations

import torch

from headcount.pruning.topk import draw_top, soft_top, top


def test_exactly_so_many_ties_by_position() -> None:
    assert top(torch.tensor([1.0, 3.0, 1.0, 1.0]), 2).tolist() == [True, True, False, False]
    assert not top(torch.zeros(3), 0).any()


def test_the_soft_set_has_the_size_that_was_asked() -> None:
    x = torch.tensor([40.0, 1.0, -2.0, -50.0])
    for keep in (1, 2, 3):
        assert abs(float(soft_top(x, keep).sum()) - keep) < 1e-5
    assert soft_top(x, 9).tolist() == [1, 1, 1, 1]


def test_drawn_sets_follow_the_values_and_pass_a_gradient() -> None:
    x = torch.tensor([2.0, 0.0, 0.0, -8.0], requires_grad=True)
    random = torch.Generator().manual_seed(0)
    drawn = torch.stack([draw_top(x, 2, random) for _ in range(300)])
    assert drawn.sum(1).eq(2).all()
    often = drawn.mean(0)
    assert often[0] > 0.75 > often[1] > 0.3
    assert often[3] < 0.02
    (drawn.mean(0) * torch.tensor([1.0, 0.0, 0.0, 0.0])).sum().backward()
    assert x.grad is not None
    # what one head gains, the others lose
    assert x.grad[0] > 0 > x.grad[1]
    assert abs(float(x.grad.sum())) < 1e-6
