from __future__ import annotations

import pytest
import torch

from headcount.base.errors import UsageError
from headcount.heads import Layout, Scores
from headcount.models.find import layout
from headcount.models.remove import remove
from headcount.pruning.select import prepare
from headcount.sensitivity.gradients import importance as measure
from models.zoo import build


def importance(model, **options):
    return prepare(model, "importance", **options)


def data(model, rows=6):
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(5, 61, (rows, 8), generator=generator)
    labels = ids
    if "Sequence" in type(model).__name__:
        labels = torch.randint(0, 2, (rows,), generator=generator)
    return [{"input_ids": ids, "labels": labels}]


def test_one_shot_keeps_the_highest_scores():
    model = build("bert")
    scores = measure(model, data(model), normalize="l1")
    decide = importance(model, data=data(model))
    for ratio in (0, 0.25, 0.5, 0.9, 1):
        assert decide(ratio, 0) == scores.keep_best(layout(model).kept_at(ratio))
        assert importance(model, scores=scores)(ratio, 0) == decide(ratio, 0)


def test_step_by_step_is_estimated_again_without_the_heads_that_went():
    model = build("bert")
    decide = importance(model, data=iter(data(model)), step=0.25, normalize="none")
    found = decide(0.5, 0)
    first = measure(model, data(model)).keep_best(12)
    second = measure(model, data(model), mask=first)
    values = [v if head in first else -1.0 for head, v in second.items()]
    assert found == Scores(layout(model), tuple(values)).keep_best(8)
    assert found <= first
    assert decide(0.25, 0) == first
    assert found != importance(model, data=data(model), normalize="none")(0.5, 0)


def test_stacks_are_not_made_alike():
    model = build("t5")
    scores = measure(model, data(model))
    assert importance(model, data=data(model))(0.5, 0) == scores.keep_best(24)
    assert scores.keep_best(24) != scores.normalized("l1").keep_best(24)


def test_a_ratio_between_two_steps_is_exact():
    model = build("bert")
    decide = importance(model, data=data(model), step=0.2)
    sizes = [len(decide(ratio, 0)) for ratio in (1, 0.9, 0.55, 0.5, 0.1, 0)]
    assert sizes == [0, 2, 8, 8, 15, 16]
    assert decide(0.9, 0) <= decide(0.55, 0) <= decide(0.1, 0)


@pytest.mark.parametrize("step", [None, 0.1])
@pytest.mark.parametrize("family", ["llama", "t5", "albert"])
def test_families(family, step):
    model = build(family)
    mask = importance(model, data=data(model), step=step)(0.5, 0)
    assert len(mask) == layout(model).kept_at(0.5)
    remove(model, mask)


def test_refusals():
    model = build("bert")
    other = Scores(Layout.of(encoder=[1]), (1,))
    with pytest.raises(UsageError, match="needs data with labels"):
        importance(model)
    with pytest.raises(UsageError, match="of another model"):
        importance(model, scores=other)
    with pytest.raises(UsageError, match="leave out step"):
        importance(other.layout, scores=other, step=0.1)
    with pytest.raises(UsageError, match="at most 1, not 2"):
        importance(model, data=data(model), step=2)
    with pytest.raises(UsageError, match=r"tokenised rows.*not a int"):
        importance(model, data=3)
    with pytest.raises(UsageError, match="needs a ratio"):
        importance(other.layout, scores=other)(None, 0)
    with pytest.raises(UsageError, match="There is no data"):
        importance(model, data=[])(0.5, 0)
