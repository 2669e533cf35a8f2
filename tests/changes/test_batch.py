from __future__ import annotations

import numpy as np
import pytest
import torch

from headcount.changes.batch import compare_batch
from headcount.models.find import layout
from models.zoo import build

BATCH = {
    "input_ids": torch.tensor([[5, 6, 7, 8], [9, 10, 0, 0]]),
    "attention_mask": torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]),
}


def test_a_model_has_not_moved_from_itself():
    model = build("bert", num_hidden_layers=2)
    with torch.no_grad():
        rows = compare_batch(model, model, BATCH, layout(model))
    assert len(rows) == 2
    for row in rows:
        assert {key: len(values) for key, values in row.items()} == {
            ("encoder", "js"): 8,
            ("encoder", "layer"): 2,
            ("encoder", "l2"): 2,
            ("encoder", "relative"): 2,
        }
        assert all(np.abs(values).max() < 1e-6 for values in row.values())


def test_only_what_comes_after_a_change_moves_and_padding_does_not_count():
    one, other = build("bert", num_hidden_layers=2), build("bert", num_hidden_layers=2)
    with torch.no_grad():
        other.bert.encoder.layer[1].attention.self.query.weight.mul_(-1)
        found = compare_batch(one, other, BATCH, layout(one))[1]
        short = {name: value[1:, :2] for name, value in BATCH.items()}
        (alone,) = compare_batch(one, other, short, layout(one))
    assert np.abs(found["encoder", "js"][:4]).max() < 1e-9
    assert found["encoder", "js"][4:].min() > 0
    assert found["encoder", "l2"][0] == pytest.approx(0, abs=1e-6)
    assert found["encoder", "layer"][1] == pytest.approx(found["encoder", "js"][4:].mean())
    for key, values in found.items():
        np.testing.assert_allclose(values, alone[key], rtol=1e-3, atol=1e-6)
