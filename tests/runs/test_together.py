"""Prunes that only close gates, in one pass over the rows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from transformers import BertForSequenceClassification

import headcount as hc
from headcount.base.errors import UsageError
from headcount.runs.cutting import PruningRun
from headcount.runs.run import Run
from headcount.runs.together import share_a_pass
from headcount.training.scoring import Scoring
from runs.flat import curve


def run(**options) -> Run:
    parts = {"method": hc.Random(), "ratio": 0.5, "gated": True, **options}
    return Run("prune", "a", task="sst2", options=hc.Prune(**parts))


def test_what_shares_a_pass():
    assert share_a_pass(run(), replace(run(ratio=0.25), seed=3))
    assert not share_a_pass(run(), run(scoring=Scoring(limit=3)))
    assert not share_a_pass(run(), run(gated=False))
    assert not share_a_pass(run(), replace(run(), model="b"))


def test_a_curve_passes_over_the_rows_once_for_many_masks(model, task, tokenizer, monkeypatch):
    passes: list[int] = []
    plain = PruningRun.score_many

    def counting(self, scored, masks=None):
        passes.append(1 if masks is None else len(masks))
        return plain(self, scored, masks)

    monkeypatch.setattr(PruningRun, "score_many", counting)
    ratios = [round(0.1 * n, 1) for n in range(1, 10)]
    found = curve(model, task, ["random"], ratios, tokenizer=tokenizer, seeds=4, bootstrap=0)
    assert len(found.points) == 36
    assert len(passes) == 3  # the full model, 32 masks, and 4 more: some of them are the same
    assert passes[0] == 1
    assert isinstance(model, BertForSequenceClassification)


def test_a_method_that_cannot_decide_fails_alone(model, task, tokenizer, tmp_path, monkeypatch):
    plain = PruningRun.decide

    def failing(self):
        if self.seed == 1:
            raise UsageError("no heads today")
        return plain(self)

    monkeypatch.setattr(PruningRun, "decide", failing)
    how = {"tokenizer": tokenizer, "seeds": 3, "bootstrap": 0, "out": tmp_path}
    with pytest.raises(UsageError, match="no heads today"):
        curve(model, task, ["random"], [0.5], **how)
    assert len(list((tmp_path / "runs").iterdir())) == 2
    monkeypatch.setattr(PruningRun, "decide", plain)
    assert len(curve(model, task, ["random"], [0.5], **how).points) == 3
