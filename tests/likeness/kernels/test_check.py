from __future__ import annotations

import numpy as np
import pytest
import torch

from headcount.base.errors import UsageError
from headcount.likeness.distances import distances
from likeness.oracles import hard_attention, oracle


def test_half_precision_rows_are_scaled_to_sum_to_one():
    attention = hard_attention(6, 40, 40, seed=9)
    half = torch.tensor(attention).bfloat16()
    assert (half.float().sum(-1) - 1).abs().max() > 1e-3
    scaled = half.double() / half.double().sum(-1, keepdim=True)
    found = distances(half, "js")["js"]
    assert np.abs(found - oracle("js", scaled.numpy())).max() < 1e-6


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        ((2, 1, 0), np.nan, "head 2 holds NaN"),
        ((1, 0, 0), np.inf, "head 1 holds NaN"),
        ((1, 0, 0), -0.5, "head 1 holds NaN, infinite or negative"),
        ((3, 2, 1), 0.9, "head 3 has rows that do not sum to 1"),
    ],
)
def test_what_is_no_attention_is_refused_with_its_head(place, value, says):
    attention = np.full((5, 4, 4), 0.25, np.float32)
    attention[place] = value
    with pytest.raises(UsageError, match=says):
        distances(attention, "cos")


def test_several_bad_heads_are_counted():
    attention = np.full((5, 4, 4), 0.25, np.float32)
    attention[1:] *= 0.5
    with pytest.raises(UsageError, match=r"head 1 \(and 3 more heads\) .*off by 0.5"):
        distances(attention, "cos")


@pytest.mark.parametrize("shape", [(4, 4), (0, 4, 4), (3, 0, 4), (1, 2, 4, 4)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(UsageError, match="three axes"):
        distances(np.full(shape, 0.25, np.float32), "cos")
