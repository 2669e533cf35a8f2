from __future__ import annotations

import json

import numpy as np
import pytest

from headcount.base.errors import UsageError
from headcount.models.find import layout
from headcount.models.probe import probe_inputs
from headcount.pruning.scorer import Scorer, load_scorer, save_scorer, score_heads, train_scorer
from headcount.pruning.select import prepare, select
from models.zoo import build
from pruning.conftest import rows


def meta(model, **options):
    return prepare(model, "meta", **options)


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
