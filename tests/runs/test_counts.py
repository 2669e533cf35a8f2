"""What one prune does, counted: nothing is derived, loaded or encoded twice."""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import replace

import pytest
from transformers import BertForSequenceClassification
from transformers.models.bert.modeling_bert import BertLayer

import headcount as hc
from headcount.models import find
from headcount.tasks import rows as task_rows


@pytest.fixture
def counted(monkeypatch):
    """How often a model runs, is laid out and walked, and rows are encoded."""
    calls: Counter[str] = Counter()

    def count(where, name, what):
        plain = getattr(where, name)

        @functools.wraps(plain)
        def counting(*args, **kwargs):
            calls[what] += 1
            return plain(*args, **kwargs)

        monkeypatch.setattr(where, name, counting)

    count(BertForSequenceClassification, "forward", "forward passes")
    count(BertLayer, "forward", "layers")
    count(find, "find_sites", "walks")
    count(find, "count_uses", "layouts")
    count(task_rows, "encode", "encoded")
    return calls


def test_one_prune_derives_everything_once(model, task, tokenizer, counted):
    def load(split):
        counted[f"loaded {split}"] += 1
        return task.loader(split)

    hc.prune(
        model, "importance", 0.5, task=replace(task, loader=load), tokenizer=tokenizer,
        repair=(hc.Recover(),), scoring=hc.Scoring(limit=30, bootstrap=10),
    )  # fmt: skip
    assert counted["layouts"] == 1
    assert counted["walks"] <= 3
    assert (counted["loaded dev"], counted["loaded train"]) == (1, 1)
    # the dev split, and the train rows of the cut and of three random ones, each its own sample
    assert counted["encoded"] == 5
    # of four cuts with their repairs: each is verified, solved layer by layer, and scored
    assert counted["forward passes"] <= 32
    # a pass may be a part of one: 3 layers in each, and 2 more where a cut layer is solved
    assert counted["layers"] <= 3 * 32 + 2 * 4
