from __future__ import annotations

import math

import numpy as np
import torch
from transformers import BertForQuestionAnswering

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


def test_places_of_an_answer_are_distributions_over_tokens():
    config = build("bert").config
    torch.manual_seed(0)
    model = BertForQuestionAnswering(config).eval()
    small = remove(model, mixed(layout(model)))
    torch.nn.init.normal_(small.qa_outputs.weight)
    ids = [[5, 6, 7, 9], [8, 9]]
    rows = EncodedRows({"input_ids": ids}, kind="question-answering")
    values = []
    for row in ids:
        p, q = (
            [x.double().softmax(-1).numpy() for x in run(m, {"input_ids": torch.tensor([row])})]
            for m in (model, small)
        )
        values += [(a * np.log(a / b)).sum() for a, b in zip(p, q, strict=True)]
    assert math.isclose(divergence(small, model, rows), np.mean(values), rel_tol=1e-3)
