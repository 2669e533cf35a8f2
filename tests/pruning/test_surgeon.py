from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from headcount.errors import UsageError
from headcount.models.find import layout
from headcount.models.remove import remove
from headcount.pruning.second_order import collect, greedy_path
from headcount.pruning.select import prepare, select
from models.zoo import build


def surgeon(model, **options):
    return prepare(model, "surgeon", **options)


def spd(size, seed):
    x = np.random.default_rng(seed).normal(size=(3 * size, size))
    return x.T @ x / len(x)


def cheapest(a, g, w, gone):
    """The least tr(G ΔᵀAΔ) over all projections that do not read the rows in `gone`."""
    kept = [i for i in range(len(w)) if i not in gone]
    new = np.zeros_like(w)
    if kept:
        new[kept] = np.linalg.solve(a[np.ix_(kept, kept)], a[kept] @ w)
    change = new - w
    return float(np.trace(g @ change.T @ a @ change))


@pytest.mark.parametrize("bias", [0, 1])
def test_costs_are_those_of_solving_the_rest_again(bias):
    """Along the whole path, against a direct solution for every set of heads gone so far."""
    heads, size, outputs = 4, 3, 5
    rng = np.random.default_rng(1)
    a, g = spd(heads * size + bias, 2), spd(outputs, 3)
    w = rng.normal(size=(heads * size + bias, outputs))
    path, costs = greedy_path(a, g, w, heads, damping=1e-12)
    gone: list[int] = []
    before = 0.0
    for head, cost in zip(path, costs, strict=True):
        left = [h for h in range(heads) if h * size not in gone]
        totals = {h: cheapest(a, g, w, [*gone, *range(h * size, (h + 1) * size)]) for h in left}
        assert min(totals, key=totals.__getitem__) == head
        assert cost == pytest.approx(totals[head] - before, rel=1e-6)
        before = totals[head]
        gone += range(head * size, (head + 1) * size)
    assert sorted(path) == list(range(heads))


def data(model, rows=8):
    ids = torch.randint(5, 61, (rows, 8), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    return [{"input_ids": ids, "attention_mask": mask}]


def test_the_sums_of_one_pass():
    model = build("bert", num_labels=3)
    (batch,) = data(model)
    sums = collect(model, [batch])
    real = batch["attention_mask"].bool()
    kept = {}

    def keep(_, args, out):
        kept["z"], kept["y"] = args[0], out

    handle = model.bert.encoder.layer[2].attention.output.dense.register_forward_hook(keep)
    logits = model(**batch).logits
    handle.remove()
    z = torch.cat([kept["z"][real], torch.ones(int(real.sum()), 1)], 1).double()
    found = sums["encoder", 2]
    assert torch.allclose(found.zz, z.T @ z, rtol=1e-4, atol=1e-5)
    assert found.tokens == int(real.sum())
    # the Fisher: labels drawn by the same seed from the model's own prediction
    generator = torch.Generator().manual_seed(0)
    drawn = torch.multinomial(logits.detach().softmax(-1), 1, generator=generator)[:, 0]
    loss = torch.nn.functional.cross_entropy(logits, drawn, reduction="sum")
    (g,) = torch.autograd.grad(loss, kept["y"])
    g = g[real].double()
    assert torch.allclose(found.gg, g.T @ g, rtol=1e-3, atol=1e-8)


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


def test_refusals():
    with pytest.raises(UsageError, match="needs inputs of the task"):
        select(build("bert"), "surgeon", 0.5)
    with pytest.raises(UsageError, match="There is no data"):
        surgeon(build("bert"), data=[])
    model = build("bert", num_labels=3)
    with pytest.raises(UsageError, match="needs a ratio"):
        surgeon(model, data=data(model))(None, 0)
