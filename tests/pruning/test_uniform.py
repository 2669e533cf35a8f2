"""Any method, held to as many key-value heads in every layer."""

from __future__ import annotations

import numpy as np
import pytest

import headcount as hc
from headcount.base.errors import UsageError
from headcount.heads import Head, Layout, Mask, Scores, Stack
from headcount.heads.uniform import is_uniform
from headcount.models.find import layout as layout_of_model
from headcount.models.probe import probe_inputs
from headcount.pruning.greedy import GreedyPath
from headcount.pruning.methods import METHODS, Decision
from headcount.pruning.select import select
from headcount.pruning.uniform import endurance, uniform
from headcount.runs.kinds.prune import Prune
from models.zoo import build

GROUPED = Layout((Stack("decoder", (9,) * 4, (3,) * 4, (1,) * 4),))


def test_given_scores_decide_in_each_layer():
    """The highest four of each layer, whatever the layers' sizes of scores."""
    layout = Layout.of(encoder=[8] * 3)
    values = np.random.default_rng(1).random(24).reshape(3, 8) * [[1], [10], [100]]
    scores = Scores(layout, tuple(values.ravel()))
    mask = select(layout, "importance", 0.5, uniform=True, scores=scores)
    assert [list(mask.indices("encoder", i)) for i in range(3)] == [
        sorted(np.argsort(row)[4:].tolist()) for row in values
    ]
    assert select(layout, "importance", 0.5, scores=scores).pattern != "444"


@pytest.mark.parametrize("ratio", [0.1, 0.5, 0.8])
def test_the_number_is_the_smallest_that_removes_no_more(ratio):
    mask = select(GROUPED, "random", ratio, seed=2, uniform=True)
    kept = min(count for count in (12, 24, 36) if count >= GROUPED.kept_at(ratio))
    assert len(mask) == kept
    assert is_uniform(mask)


def test_a_method_with_a_mask_alone_is_asked_for_every_number():
    """A function keeps the last heads of each layer, layer by layer: so does the uniform choice."""
    layout = Layout.of(encoder=[4] * 3)

    def late(model: object, rows: object, ratio: float) -> Mask:
        heads = sorted(layout, key=lambda head: (head.index, head.layer))
        return Mask.of(layout, heads[len(layout) - layout.kept_at(ratio) :])

    mask = select(layout, late, 0.6, uniform=True)
    assert [mask.indices("encoder", i) for i in range(3)] == [(2, 3)] * 3


def test_how_long_heads_stay():
    layout = Layout.of(encoder=[2, 2])
    scores = Scores(layout, (0.4, 0.1, 0.2, 0.3))

    def decide(ratio: float | None, seed: int) -> Decision:
        return Decision(mask=scores.keep_best(layout.kept_at(ratio or 0)))

    assert endurance(decide, layout, 0).values == (3, 0, 1, 2)


def test_a_path_ranks_what_went_before():
    """The scores of a path order all heads by when they went, so any layer can be filled again."""
    layout = Layout.of(encoder=[3, 3])
    order = [Head("encoder", *pair) for pair in ((0, 0), (0, 1), (1, 2), (0, 2), (1, 0), (1, 1))]

    def measure(mask: Mask) -> Scores:
        return Scores(layout, tuple(float(order.index(head)) for head in layout))

    path = GreedyPath(layout, measure, 1)
    assert [path.keep(1).scores.ranked(), path.keep(4).scores.ranked()] == [order] * 2
    decide = uniform(lambda ratio, seed: path.keep(layout.kept_at(ratio)), layout, "path")
    assert decide(2 / 3, 0).mask == Mask.of(layout, [order[3], order[5]])
    assert decide(2 / 3, 0).free == Mask.of(layout, [order[4], order[5]])


@pytest.mark.parametrize("method", ["surgeon", "cluster", "magnitude", "random"])
def test_a_model_without_labels(method):
    model = build("llama")
    rows = [probe_inputs(model, batch=4, seed=seed) for seed in range(3)]
    mask = select(model, method, 0.5, inputs=None if method == "random" else rows, uniform=True)
    assert mask.pattern == "2222"
    assert is_uniform(mask)
    assert layout_of_model(hc.remove(model, mask))["decoder"].groups == (1,) * 4


def test_what_is_uniform_already_passes():
    assert (
        select(Layout.of(encoder=[8] * 4), "pattern", keep="5555", uniform=True).pattern == "5555"
    )
    assert select(GROUPED, "all-heads", uniform=True) == Mask.full(GROUPED)


def test_refusals():
    with pytest.raises(UsageError, match="'layers' cannot be held to as many heads in every layer"):
        select(GROUPED, "layers", empty="top:1", uniform=True)
    with pytest.raises(UsageError, match="leaves a key-value head in every layer"):
        select(GROUPED, "random", 1.0, uniform=True)
    with pytest.raises(UsageError, match="'subset' trains the weights"):
        select(GROUPED, "subset", 0.5, uniform=True)
    with pytest.raises(UsageError, match="'subset' trains the weights"):
        Prune(method=METHODS.make("subset"), ratio=0.5, uniform=True)
