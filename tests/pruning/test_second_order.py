from __future__ import annotations

import numpy as np
import pytest
import torch

from headcount.pruning.second_order import collect, greedy_path
from models.zoo import build
from pruning.conftest import data, spd


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


def cheapest(a, g, w, gone):
    """The least tr(G ΔᵀAΔ) over all projections that do not read the rows in `gone`."""
    kept = [i for i in range(len(w)) if i not in gone]
    new = np.zeros_like(w)
    if kept:
        new[kept] = np.linalg.solve(a[np.ix_(kept, kept)], a[kept] @ w)
    change = new - w
    return float(np.trace(g @ change.T @ a @ change))
