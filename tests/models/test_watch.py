from __future__ import annotations

import torch
from torch import nn

from headcount.models.watch import watching


def test_each_run_is_seen_and_may_be_answered_otherwise():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    seen = []

    def take(key, args, output):
        seen.append((key, args[0].shape, output.shape))
        return torch.full_like(output, 7.0) if key == "last" else None

    with watching(model, [("first", "0"), ("last", "1")], take):
        assert model(torch.zeros(3, 2)).eq(7).all()
    assert [key for key, *_ in seen] == ["first", "last"]
    assert not model(torch.zeros(3, 2)).eq(7).any()
    assert len(seen) == 2
