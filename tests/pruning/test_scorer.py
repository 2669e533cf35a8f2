from __future__ import annotations

import pytest
import torch

from headcount.heads import Head
from headcount.models.capture import AttentionSource
from headcount.models.find import sites_of
from headcount.pruning.scorer import Scorer, layer_scores, mean_scores, score_heads, train_scorer
from models.zoo import build
from pruning.conftest import rows


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


def test_the_model_stays_and_the_scorer_learns(bert):
    before = {name: value.clone() for name, value in bert.state_dict().items()}
    scorer, losses = train_scorer(bert, rows(), steps=12, seed=1)
    assert len(losses) == 12
    assert all(value > 0 for value in losses)
    for name, value in bert.state_dict().items():
        assert torch.equal(value, before[name])
    assert all(parameter.requires_grad for parameter in bert.parameters())
    again, same = train_scorer(bert, rows(), steps=12, seed=1)
    assert same == losses
    for one, other in zip(scorer.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)
    fresh, _ = train_scorer(bert, rows(), steps=1, learning_rate=1e-9, seed=1)
    moved = [float((a - b).detach().abs().max()) for a, b in
             zip(scorer.parameters(), fresh.parameters(), strict=True)]  # fmt: skip
    assert max(moved) > 1e-4


def test_heads_that_matter_get_the_better_scores(bert):
    # in every layer heads 0 and 1 write nothing, and attend evenly: their maps look alike
    model = build("bert", num_hidden_layers=2)
    with torch.no_grad():
        for site in sites_of(model):
            attention = model.get_submodule(site.path)
            idle = slice(0, 2 * site.head_dim)
            model.get_submodule(site.out).weight[:, idle] = 0
            model.get_submodule(site.out).weight[:, 2 * site.head_dim :] *= 20
            for name, module in attention.named_modules():
                if name.endswith("query"):
                    module.weight[idle] = 0
                    module.bias[idle] = 0
                    module.weight[2 * site.head_dim :] *= 30
    scorer, _ = train_scorer(model, rows(48), steps=80, learning_rate=2.0)
    scores = score_heads(model, scorer, rows())
    for layer in (0, 1):
        idle = max(scores[Head("encoder", layer, i)] for i in (0, 1))
        busy = min(scores[Head("encoder", layer, i)] for i in (2, 3))
        assert busy > idle


def test_a_shared_layer_is_scored_over_all_its_uses():
    scorer = Scorer()
    maps = {AttentionSource("encoder", 0, use): torch.rand(2, 4, 5, 5) for use in (0, 1)}
    each = [mean_scores(scorer, maps[place], {}, place) for place in maps]
    found = layer_scores(scorer, maps, {}, ("encoder", 0))
    torch.testing.assert_close(found, (each[0] + each[1]) / 2)
    albert = build("albert")
    assert len(train_scorer(albert, rows(), steps=2)[1]) == 2
