from __future__ import annotations

import math

import pytest
import torch

from headcount.base.errors import UsageError
from headcount.heads import Head, Mask
from headcount.models.find import layout, sites_of
from headcount.models.remove import remove
from headcount.pruning.gnorm import gradient_norms
from headcount.pruning.select import prepare, select
from models.zoo import build
from pruning.conftest import data


def labelled(model, rows=8):
    (batch,) = data(model, rows)
    words = "Sequence" not in type(model).__name__
    return [batch | {"labels": batch["input_ids"] if words else torch.arange(rows) % 2}]


def expected(model, batch, names, out, layers):
    """From the loss that transformers computes, on a model whose heads are really closed."""
    model.zero_grad()
    model(**batch).loss.backward()
    scores = []
    for layer in range(layers):
        module = model.get_submodule(out.format(layer))
        for head in range(4):
            product = 1.0
            for name in names:
                gradient = getattr(module, name).weight.grad
                index = head * (len(gradient) // 8) // 4
                product *= float(gradient[8 * index : 8 * index + 8].norm())
            scores.append(product)
    model.zero_grad(set_to_none=True)
    return scores


@pytest.mark.parametrize(
    ("family", "path", "names", "out"),
    [
        (
            "bert",
            "bert.encoder.layer.{}.attention.self",
            ("query", "key", "value"),
            "bert.encoder.layer.{}.attention.output.dense",
        ),
        (
            "llama",
            "model.layers.{}.self_attn",
            ("q_proj", "k_proj", "v_proj"),
            "model.layers.{}.self_attn.o_proj",
        ),
    ],
)
def test_the_score_is_the_product_of_the_gradients_norms(family, path, names, out):
    model = build(family)
    (batch,) = labelled(model)
    if family == "llama":  # one row: an example's mean over its tokens is the batch's
        batch = {name: value[:1] for name, value in batch.items()}
    heads = layout(model)
    scores = gradient_norms(model, [batch], Mask.full(heads))
    layers = len(heads) // 4
    wanted = expected(model, batch, names, path, layers)
    assert all(
        math.isclose(a, b, rel_tol=1e-3, abs_tol=1e-14)
        for a, b in zip(scores.values, wanted, strict=True)
    )
    # without a head: its rows of the output projection are zero
    stack = next(iter(heads)).stack
    gone = Head(stack, 0, 1)
    after = gradient_norms(model, [batch], Mask.full(heads).drop([gone]))
    with torch.no_grad():
        model.get_submodule(out.format(0)).weight[:, 8:16] = 0
    wanted = expected(model, batch, names, path, layers)
    pairs = [(v, w) for (h, v), w in zip(after.items(), wanted, strict=True) if h != gone]
    assert all(math.isclose(v, w, rel_tol=1e-3, abs_tol=1e-14) for v, w in pairs)
    assert after.values != scores.values
    assert all(not p.grad for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize(("family", "child"), [("gpt2", "c_attn"), ("gpt-neox", "query_key_value")])
def test_fused_projections_are_split_into_three(family, child):
    """The product over fused rows is that of the same rows, taken apart by hand."""
    model = build(family)
    (batch,) = labelled(model)
    batch = {name: value[:1] for name, value in batch.items()}
    scores = gradient_norms(model, [batch], Mask.full(layout(model)))
    model(**batch).loss.backward()
    site = sites_of(model)[1]
    weight = getattr(model.get_submodule(site.path), child).weight.grad
    for head in range(4):
        if family == "gpt2":  # (input, 3 x heads x size)
            parts = [weight[:, 32 * p + 8 * head : 32 * p + 8 * head + 8] for p in range(3)]
        else:  # (heads x 3 x size, input)
            parts = list(weight[24 * head : 24 * head + 24].split(8))
        product = math.prod(float(part.norm()) for part in parts)
        assert math.isclose(scores[Head("decoder", 1, head)], product, rel_tol=1e-3)


def test_heads_go_one_by_one_and_are_measured_again():
    model = build("bert")
    rows, heads = labelled(model), layout(model)
    decide = prepare(model, "gnorm", data=iter(rows))
    mask = Mask.full(heads)
    for _ in range(5):
        scores = gradient_norms(model, rows, mask)
        mask = mask.drop([min(mask, key=lambda head: scores[head])])
    assert decide(5 / 16, 0) == mask
    one_shot = prepare(model, "gnorm", data=rows, step=1.0)(5 / 16, 0)
    assert one_shot == gradient_norms(model, rows, Mask.full(heads)).keep_best(11)


@pytest.mark.parametrize("family", ["llama", "t5", "albert"])
def test_families(family):
    model = build(family)
    mask = select(model, "gnorm", 0.5, data=labelled(model))
    assert len(mask) == layout(model).kept_at(0.5)
    remove(model, mask)


def test_what_is_refused():
    model = build("bert")
    with pytest.raises(UsageError, match="'gnorm' needs data with labels"):
        select(model, "gnorm", 0.5, inputs=data(model))
    with pytest.raises(UsageError, match="a batch has no 'labels'"):
        select(model, "gnorm", 0.5, data=data(model))
    batch = data(model)[0] | {"labels": torch.full((8,), -100)}
    with pytest.raises(UsageError, match="no example has a label that counts"):
        gradient_norms(model, [batch], Mask.full(layout(model)))
    with pytest.raises(UsageError, match="at most 1, not 0"):
        prepare(model, "gnorm", data=labelled(model), step=0.0)
