from __future__ import annotations

import math

import numpy as np
import torch

from headcount.models.find import layout
from headcount.models.probe import probe_inputs, run
from headcount.models.remove import remove
from headcount.repair.fidelity import divergence
from headcount.tasks.encoding import EncodedRows
from models.zoo import build, mixed


def test_divergence_of_a_classifier_and_of_words_is_that_of_their_distributions():
    for family, per_token in (("bert", False), ("llama", True)):
        model = build(family)
        small = remove(model, mixed(layout(model)))
        batch = probe_inputs(model, batch=3, length=6)
        p, q = (run(m, batch)[0].double().softmax(-1).numpy() for m in (model, small))
        by_answer = (p * np.log(p / q)).sum(-1)
        if per_token:
            real = batch["attention_mask"].bool().numpy()
            assert not real.all()
            by_answer = by_answer[real]
        assert abs(divergence(small, model, [batch]) - by_answer.mean()) < 1e-6
        assert divergence(model, model, [batch]) == 0


def test_answers_that_are_numbers_are_compared_by_squared_error():
    model = build("bert", num_labels=1)
    small = remove(model, mixed(layout(model)))
    rows = EncodedRows({"input_ids": [[5, 6, 7], [8, 9, 4, 3]]}, kind="regression")
    full, cut = (
        torch.cat(
            [run(m, {"input_ids": torch.tensor([row])})[0] for row in rows.columns["input_ids"]]
        )
        for m in (model, small)
    )
    expected = float((full - cut).square().sum() / full.square().sum())
    assert math.isclose(divergence(small, model, rows), expected, rel_tol=1e-4)


def test_a_model_without_a_head_is_compared_by_its_states():
    model = build("bert").bert
    small = remove(model, mixed(layout(model)))
    batch = {"input_ids": torch.tensor([[5, 6, 7]])}
    full, cut = (run(m, batch)[0] for m in (model, small))
    expected = float((full - cut).square().sum() / full.square().sum())
    assert math.isclose(divergence(small, model, [batch]), expected, rel_tol=1e-4)
