from __future__ import annotations

import pytest
import torch

from headcount.base.errors import UnsupportedError, UsageError
from headcount.models.probe import (
    describe,
    find_probe,
    no_numbers,
    probe_inputs,
    reads_text,
    relative_difference,
    require_finite,
    run,
    tensors,
)
from models.zoo import build


def test_inputs_are_those_of_the_model_and_follow_the_seed():
    model = build("bert", num_hidden_layers=1)
    found = probe_inputs(model, batch=2, length=6, seed=1)
    assert found["attention_mask"].tolist() == [[1] * 6, [1, 1, 1, 1, 0, 0]]
    assert torch.equal(found["input_ids"], probe_inputs(model, length=6, seed=1)["input_ids"])
    assert not torch.equal(found["input_ids"], probe_inputs(model, length=6, seed=2)["input_ids"])
    assert describe(found) == "6 tokens"
    assert describe(probe_inputs(build("vit", num_hidden_layers=1))) == "an image of 3 x 16 x 16"


def test_who_reads_text():
    assert reads_text(build("bert", num_hidden_layers=1))
    assert reads_text(build("clip"))
    assert not reads_text(build("vit", num_hidden_layers=1))


def test_the_first_input_that_runs_is_taken():
    model = build("bert", num_hidden_layers=1)
    plain = model.forward

    def unpadded(input_ids=None, attention_mask=None):
        assert attention_mask is None, "padding is not for me"
        return plain(input_ids)

    model.forward = unpadded
    assert set(find_probe(model)) == {"input_ids"}
    model.forward = lambda input_ids=None: 1 / 0
    with pytest.raises(UnsupportedError, match=r"does not run .*\(division by zero\); pass one"):
        find_probe(model)


def test_differences_are_relative_and_strict():
    one = [torch.tensor([1.0, -4.0])]
    assert relative_difference(one, [torch.tensor([1.0, -3.0])]) == 0.25
    assert relative_difference(one, one) == 0
    for other in ([], [torch.zeros(3)], [torch.tensor([1.0, torch.nan])]):
        assert relative_difference(one, other) == float("inf")


def test_caches_and_attention_are_no_answers():
    out = {"logits": torch.ones(1), "attentions": (torch.ones(2),), "ids": torch.ones(1).long()}
    assert [t.tolist() for t in tensors({**out, "more": (torch.zeros(2), [torch.ones(1)])})] == [
        [1.0],
        [0.0, 0.0],
        [1.0],
    ]


def test_weights_that_are_no_numbers_are_named():
    model = build("bert", num_hidden_layers=1)
    answers = run(model, probe_inputs(model))
    require_finite(model, answers)
    with pytest.raises(UsageError, match="answer to the probe input"):
        require_finite(model, [torch.tensor(torch.nan)])
    with torch.no_grad():
        model.classifier.bias[0] = torch.nan
    with pytest.raises(UsageError, match=r"weights in classifier\.bias"):
        require_finite(model, run(model, probe_inputs(model)))


def test_numbers_that_no_probe_reads_are_looked_at():
    model = build("bert", vocab_size=900)
    with torch.no_grad():
        model.get_input_embeddings().weight[800] = float("nan")  # a probe reads the first 500
    answers = run(model, find_probe(model))
    assert all(torch.isfinite(answer).all() for answer in answers)
    with pytest.raises(UsageError, match=r"word_embeddings\.weight are not all numbers"):
        require_finite(model, answers)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_buffers_are_numbers_too(value):
    model = build("bert")
    model.register_buffer("mask", torch.tensor([0.0, -torch.inf]), persistent=False)
    assert no_numbers(model) == {}  # what a class computes may hide with infinity
    model.register_buffer("running", torch.tensor([1.0, value, value]))
    assert no_numbers(model) == {"running": 2}
    with pytest.raises(UsageError, match="running are not all numbers"):
        require_finite(model, [])
