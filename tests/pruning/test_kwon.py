from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from headcount.base.errors import UsageError
from headcount.heads import Head, Mask
from headcount.models.find import layout
from headcount.models.gates import gate
from headcount.pruning.kwon import exchanged, mask_fisher
from headcount.pruning.methods import MethodInputs
from headcount.pruning.select import prepare, select
from models.zoo import build
from pruning.conftest import data


def labelled(model):
    (batch,) = data(model)
    return [batch | {"labels": torch.arange(8) % 3}]


def test_the_fisher_is_that_of_one_example_after_another():
    model = build("bert", num_labels=3, num_hidden_layers=2)
    (batch,) = labelled(model)
    expected = np.zeros((8, 8))
    for row in range(8):
        one = {name: value[row : row + 1] for name, value in batch.items()}
        gates = [torch.ones(4, requires_grad=True) for _ in range(2)]
        with gate(model, {"encoder": gates}):
            loss = model(**one).loss
            g = torch.cat(torch.autograd.grad(loss, gates)).double().numpy()
        expected += np.outer(g, g) / 8
    fisher = mask_fisher(model, layout(model), MethodInputs(data=[batch]))
    assert np.allclose(fisher, expected, rtol=1e-3, atol=1e-9)


def test_exchanges_end_where_no_pair_lowers_the_loss():
    model = build("bert", num_hidden_layers=2)
    heads = layout(model)
    x = np.random.default_rng(5).normal(size=(20, 8)) + 1
    fisher = x.T @ x

    def loss(mask):
        gone = np.array([head not in mask for head in heads], dtype=float)
        return sum(
            gone[4 * n : 4 * n + 4] @ fisher[4 * n :, 4 * n :][:4, :4] @ gone[4 * n :][:4]
            for n in (0, 1)
        )

    start = Mask.full(heads).drop([Head("encoder", n, i) for n in (0, 1) for i in (0, 1)])
    made = exchanged(start, fisher)
    assert len(made) == len(start)
    assert [len(made.indices("encoder", n)) for n in (0, 1)] == [2, 2]
    assert loss(made) < loss(start)
    for layer, (i, j) in itertools.product((0, 1), itertools.product(range(4), range(4))):
        one, two = Head("encoder", layer, i), Head("encoder", layer, j)
        if one in made and two not in made:
            swapped = Mask(heads, (frozenset(made) - {one}) | {two})
            assert loss(swapped) >= loss(made) - 1e-9


def test_every_ratio_and_what_is_refused():
    model = build("llama")
    (batch,) = data(model)
    rows = [batch | {"labels": batch["input_ids"]}]
    decide = prepare(model, "kwon", data=rows)
    assert [len(decide(ratio, 0)) for ratio in (0, 0.25, 0.5, 1)] == [16, 12, 8, 0]
    with pytest.raises(UsageError, match="'kwon' needs data with labels"):
        select(model, "kwon", 0.5, inputs=data(model))
