from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from headcount.base.errors import UsageError
from headcount.models.find import layout
from headcount.models.remove import remove
from headcount.pruning.second_order import collect, greedy_path
from headcount.pruning.select import prepare, select
from headcount.pruning.surgeon import paths
from models.zoo import build
from pruning.conftest import cheapest, data, spd


def surgeon(model, **options):
    return prepare(model, "surgeon", **options)


@pytest.mark.parametrize("family", ["bert", "albert", "gpt2", "llama", "t5", "marian"])
def test_every_ratio_from_one_pass(family):
    model = build(family)
    decide = surgeon(model, data=data(model))
    masks = [decide(ratio, 0) for ratio in (0, 0.25, 0.5, 0.9, 1)]
    assert [len(m) for m in masks] == [layout(model).kept_at(r) for r in (0, 0.25, 0.5, 0.9, 1)]
    if family != "llama":  # heads that share keys go in groups: not nested
        assert all(small <= large for large, small in itertools.pairwise(masks))
    remove(model, masks[2])
    assert not any(m._forward_hooks for m in model.modules())


def test_a_head_that_writes_nothing_goes_first():
    model = build("bert", num_labels=3)
    with torch.no_grad():
        model.bert.encoder.layer[1].attention.output.dense.weight[:, 8:16] = 0
    (gone,) = surgeon(model, data=data(model))(1 / 16, 0).dropped
    assert gone == ("encoder", 1, 1)


def test_a_head_that_another_repeats_goes_before_one_alone():
    """Importance would see two heads that matter; the surgeon sees that one can stand for both."""
    a = spd(9, 4)
    a[3:6, 3:6], a[3:6, :3], a[:3, 3:6] = a[:3, :3], a[:3, :3], a[:3, :3]
    a[3:6, 6:], a[6:, 3:6] = a[:3, 6:], a[6:, :3]
    w = np.random.default_rng(0).normal(size=(9, 4))
    w[6:] *= 0.3
    path, costs = greedy_path(a, np.eye(4), w, 3, damping=1e-9)
    assert path[0] in (0, 1)
    assert costs[0] < 1e-5 < costs[1]


def test_stacks_are_compared_by_the_loss_of_all_their_tokens():
    """A mean over tokens made heads of a long encoder look as cheap as its tokens are many."""
    model = build("t5")
    rows, removed = data(model), paths(model, data(model))
    sums = collect(model, rows)
    assert len({layer.tokens for layer in sums.values()}) > 1
    for place, (order, costs) in removed.items():
        a, _, w = sums[place].normal()
        inverse = np.linalg.inv(a + 1e-3 * np.trace(a) / len(a) * np.eye(len(a)))
        size = len(w) // sums[place].heads
        head = slice(order[0] * size, (order[0] + 1) * size)
        change = w[head].T @ np.linalg.inv(inverse[head, head]) @ w[head]
        wanted = np.trace(change @ sums[place].gg.numpy()) * sums[place].coherence
        assert costs[0] == pytest.approx(wanted, rel=1e-6)


def test_a_group_of_heads_goes_at_once():
    """The costs of groups against a direct solution without all their rows."""
    model = build("llama")
    rows, sums = data(model), collect(model, data(model))
    removed = paths(model, rows, groups=True)
    for place, (order, costs) in removed.items():
        a, g, w = sums[place].normal()
        a = a + 1e-3 * np.trace(a) / len(a) * np.eye(len(a))
        size, gone, total = len(w) // sums[place].groups, [], 0.0
        assert sums[place].groups < sums[place].heads
        assert sorted(order) == list(range(sums[place].groups))
        for group, cost in zip(order, costs, strict=True):
            left = [n for n in range(sums[place].groups) if n * size not in gone]
            after = {n: cheapest(a, g, w, [*gone, *range(n * size, (n + 1) * size)]) for n in left}
            assert min(after, key=after.__getitem__) == group
            scale = sums[place].tokens * sums[place].coherence
            assert cost == pytest.approx((after[group] - total) * scale, rel=1e-6)
            gone += range(group * size, (group + 1) * size)
            total = after[group]


def test_refusals(monkeypatch):
    with pytest.raises(UsageError, match="needs calibration rows: pass a task or inputs"):
        select(build("bert"), "surgeon", 0.5)
    with pytest.raises(UsageError, match="There is no data"):
        surgeon(build("bert"), data=[])
    model = build("bert", num_labels=3)
    sums = 8 * sum((rows + 1) ** 2 + rows**2 for rows in [32] * 4)  # 4 layers of width 32
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=sums - 1))
    with pytest.raises(UsageError, match=r"surgeon's sums take 0\.0 GiB of memory"):
        surgeon(model, data=data(model))
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=sums))
    with pytest.raises(UsageError, match="needs a ratio"):
        surgeon(model, data=data(model))(None, 0)
