from __future__ import annotations

import pytest
import torch

from headcount.models.capture import AttentionSource
from headcount.pruning.scorer import Scorer, mean_scores


@pytest.mark.parametrize("side", ["left", "right"])
def test_scores_of_a_batch_are_those_of_its_rows_alone(side):
    scorer, maps = Scorer(), torch.rand(2, 4, 5, 5)
    there = torch.tensor([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1] if side == "left" else [1, 1, 1, 0, 0]])
    found = mean_scores(scorer, maps, {"attention_mask": there}, AttentionSource("encoder", 0, 0))
    one_by_one = torch.stack(
        [scorer(own[:, k][:, :, k], torch.ones(4, len(k), len(k)))
         for own, k in ((maps[i], there[i].nonzero().flatten()) for i in (0, 1))]
    ).mean(0)  # fmt: skip
    torch.testing.assert_close(found, one_by_one)


def test_padding_does_not_count():
    scorer = Scorer()
    maps = torch.rand(3, 5, 5)
    real = torch.ones(3, 5, 5)
    wide, more = torch.rand(3, 8, 8), torch.zeros(3, 8, 8)
    wide[:, :5, :5], more[:, :5, :5] = maps, 1
    # the edge of the map sees zeros either way
    torch.testing.assert_close(scorer(maps, real), scorer(wide, more))
