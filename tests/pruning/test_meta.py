from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from headcount.errors import UsageError
from headcount.heads import Head
from headcount.models.capture import Place
from headcount.models.find import layout, sites_of
from headcount.models.probe import probe_inputs
from headcount.pruning.scorer import Scorer, layer_scores, load_scorer, mean_scores, save_scorer
from headcount.pruning.scorer_training import score_heads, train_scorer
from headcount.pruning.select import prepare, select
from headcount.tasks.encoding import Encoded
from models.zoo import build


def meta(model, **options):
    return prepare(model, "meta", **options)


def rows(many: int = 24) -> Encoded:
    random = np.random.default_rng(0)
    return Encoded(
        {"input_ids": [random.integers(5, 60, n).tolist() for n in random.integers(4, 12, many)]}
    )


@pytest.fixture(scope="module")
def bert():
    return build("bert", num_hidden_layers=2)


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
    maps = {Place("encoder", 0, use): torch.rand(2, 4, 5, 5) for use in (0, 1)}
    each = [mean_scores(scorer, maps[place], {}, place) for place in maps]
    found = layer_scores(scorer, maps, {}, ("encoder", 0))
    torch.testing.assert_close(found, (each[0] + each[1]) / 2)
    albert = build("albert")
    assert len(train_scorer(albert, rows(), steps=2)[1]) == 2


def test_the_best_share_of_every_layer_stays(bert, tmp_path):
    scorer = Scorer()
    mask = select(bert, "meta", 0.5, data=rows(), scorer=scorer)
    assert mask.pattern == "22"
    scores = score_heads(bert, scorer, rows())
    assert min(scores[h] for h in mask.kept if h.layer == 0) > max(
        scores[h] for h in mask.dropped if h.layer == 0
    )
    assert select(bert, "meta", 0.25, data=rows(), scorer=scorer).pattern == "33"


def test_saved_once_and_applied_to_other_inputs(bert, tmp_path):
    path = tmp_path / "scorer.safetensors"
    first = meta(bert, data=rows(), scorer=path, scorer_steps=2)(0.5, 0)
    assert json.loads(path.with_suffix(".json").read_text())["steps"] == 2
    stamp = path.read_bytes()
    assert (
        meta(bert, data=rows(), scorer=path, scorer_steps=9)(0.5, 0) == first
    )  # not trained again
    assert path.read_bytes() == stamp
    scorer = load_scorer(path)
    bart = build("bart")
    batches = [probe_inputs(bart, batch=4, seed=seed) for seed in range(2)]
    mask = meta(bart, inputs=batches, scorer=scorer)(0.5, 0)
    assert mask.counts() == dict.fromkeys(("encoder", "cross", "decoder"), (2,) * 4)
    save_scorer(scorer, tmp_path / "again.safetensors")
    assert len(score_heads(bart, load_scorer(tmp_path / "again.safetensors"), batches).values) == 48


@pytest.mark.parametrize("family", ["llama", "albert", "gpt2"])
def test_trained_on_other_families(family):
    model = build(family)
    batches = [probe_inputs(model, batch=6, seed=seed) for seed in range(2)]
    scorer, losses = train_scorer(model, batches, steps=2)
    assert np.isfinite(losses).all()
    assert score_heads(model, scorer, batches).layout == layout(model)


def test_refusals(bert, tmp_path):
    with pytest.raises(UsageError, match="pass a task or inputs"):
        meta(bert)
    with pytest.raises(UsageError, match="needs a ratio"):
        meta(bert, data=rows(), scorer=Scorer())(None, 0)
    with pytest.raises(UsageError, match="at least one step"):
        train_scorer(bert, rows(), steps=0)
    with pytest.raises(UsageError, match="at least three rows"):
        train_scorer(bert, rows(2), steps=1)
    (tmp_path / "x.safetensors").write_text("nothing")
    (tmp_path / "x.json").write_text('{"width": 8}')
    with pytest.raises(UsageError, match="is not a scorer"):
        meta(bert, data=rows(), scorer=tmp_path / "x.safetensors")
