from __future__ import annotations

import numpy as np
import pytest
import torch

from headcount.base.errors import UsageError
from headcount.models.find import layout
from headcount.models.remove import remove
from headcount.pruning.head_statistics import head_sums
from headcount.pruning.methods import MethodInputs
from headcount.pruning.select import prepare, select
from models.zoo import build
from pruning.conftest import data

NAMES = ("flap", "wanda", "minitron", "attention-drop")


def stored(model, batch, path):
    """(token, input) what goes into a projection, padding left out."""
    seen = []
    handle = model.get_submodule(path).register_forward_hook(
        lambda _m, args, _o: seen.append(args[0])
    )
    with torch.no_grad():
        model(**batch)
    handle.remove()
    return seen[0][batch["attention_mask"].bool()].double().numpy()


def test_the_sums_are_those_of_stored_activations():
    model = build("bert")
    (batch,) = data(model)
    sums = head_sums(model, MethodInputs(inputs=[batch, batch]), "flap")["encoder", 2]
    z = np.tile(stored(model, batch, "bert.encoder.layer.2.attention.output.dense"), (2, 1))
    assert sums.tokens == len(z)
    assert np.allclose(sums.variances, z.var(0, ddof=1), rtol=1e-5)
    norms = np.linalg.norm(z.reshape(len(z), 4, 8), axis=2)
    assert np.allclose(sums.norms, norms.sum(0), rtol=1e-6)


@pytest.mark.parametrize("family", ["bert", "albert", "gpt2", "llama", "t5"])
@pytest.mark.parametrize("method", [*NAMES, "magnitude"])
def test_every_ratio_can_be_removed(family, method):
    model = build(family)
    decide = prepare(model, method, inputs=None if method == "magnitude" else data(model))
    masks = [decide(ratio, 0) for ratio in (0, 0.25, 0.5, 1)]
    assert [len(m) for m in masks] == [layout(model).kept_at(r) for r in (0, 0.25, 0.5, 1)]
    remove(model, masks[2])
    assert not any(m._forward_hooks for m in model.modules())


@pytest.mark.parametrize("method", NAMES)
def test_rows_are_needed_and_some_token_must_count(method):
    model = build("bert")
    with pytest.raises(UsageError, match=f"'{method}' needs calibration rows: pass a task"):
        select(model, method, 0.5)
    if method != "attention-drop":
        empty = [{**data(model)[0], "attention_mask": torch.zeros(8, 8).long()}]
        with pytest.raises(UsageError, match="No token of the calibration rows counts"):
            select(model, method, 0.5, inputs=empty)
