from __future__ import annotations

import pytest
import torch

import headcount as hc
from headcount.base.errors import UnsupportedError
from headcount.behaviour.looks import AttentionMeans, BatchWeights
from headcount.behaviour.tokens import marks_of
from headcount.models.capture import AttentionSource
from models.zoo import build


def test_inputs_are_counted_where_they_have_text() -> None:
    model = build("bert")
    model.config.bos_token_id = 7
    marks = marks_of(model, None)
    looks = AttentionMeans(model.eval(), hc.layout(model), marks)
    looks.take({"input_ids": torch.tensor([[7, 8, 9], [7, 7, 7]])})
    looks.take({"input_ids": torch.tensor([[8, 9]])})
    assert (looks.read, looks.count) == (3, 2)
    assert looks.seen.count[:, 0].tolist() == [2] * 16
    assert looks.tokens == 8


def test_weights_are_made_once_for_a_batch() -> None:
    model = build("bert")
    marks = marks_of(model, None)
    sights = BatchWeights(marks.sides(model, {"input_ids": torch.tensor([[8, 9, 10]])}))
    attention = torch.full((1, 2, 3, 3), 1 / 3)
    first = sights.weights(AttentionSource("encoder", 0, 0), attention)
    assert sights.weights(AttentionSource("encoder", 3, 0), attention) is first
    causal = torch.tensor([[1.0, 0, 0], [0.5, 0.5, 0], [0.3, 0.3, 0.4]]).expand(1, 2, 3, 3)
    assert sights.weights(AttentionSource("encoder", 3, 0), causal) is not first


def test_attention_over_something_else_than_tokens_is_refused() -> None:
    model = build("bert")
    sights = BatchWeights(marks_of(model, None).sides(model, {"input_ids": torch.tensor([[8, 9]])}))
    with pytest.raises(UnsupportedError, match="3 x 3 places and there are 2 x 2 tokens"):
        sights.weights(AttentionSource("encoder", 1, 0), torch.ones(1, 2, 3, 3))
