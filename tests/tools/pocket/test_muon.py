from __future__ import annotations

import torch
from torch import nn

from tools.pocket.muon import Muon, orthogonal


def test_updates_have_singular_values_near_one_and_keep_their_directions() -> None:
    torch.manual_seed(0)
    for shape in ((3, 16, 16), (3, 8, 32), (3, 32, 8)):
        matrices = torch.randn(shape)
        found = orthogonal(matrices)
        values = torch.linalg.svdvals(found)
        assert values.min() > 0.3
        assert values.max() < 1.4
        u, _, v = torch.linalg.svd(matrices, full_matrices=False)
        assert torch.linalg.norm(found - u @ v) < 0.35 * torch.linalg.norm(u @ v)


def test_matrices_that_are_updated_together_move_as_they_would_alone() -> None:
    torch.manual_seed(0)
    start, slopes = torch.randn(3, 4, 6), torch.randn(5, 3, 4, 6)
    together = [nn.Parameter(part.clone()) for part in start]
    alone = [nn.Parameter(part.clone()) for part in start]
    optimizers = [Muon(together, lr=0.1, weight_decay=0.01)]
    optimizers += [Muon([part], lr=0.1, weight_decay=0.01) for part in alone]
    for slope in slopes:
        for part, grad in zip([*together, *alone], [*slope, *slope], strict=True):
            part.grad = grad.clone()
        for optimizer in optimizers:
            optimizer.step()
    for one, other in zip(together, alone, strict=True):
        torch.testing.assert_close(one, other)


def test_the_first_update_is_a_scaled_orthogonal_matrix() -> None:
    torch.manual_seed(0)
    weight = nn.Parameter(torch.zeros(4, 9))
    weight.grad = torch.randn(4, 9)
    slope = weight.grad.clone()
    Muon([weight], lr=0.5, weight_decay=0.0).step()
    # momentum looks ahead along the same line, so the first direction is the gradient's own
    torch.testing.assert_close(weight.detach(), -0.5 * 0.2 * 3.0 * orthogonal(slope[None])[0])
