from __future__ import annotations

import numpy as np
import pytest
import torch

import headcount as hc
from headcount.base.errors import UnsupportedError
from headcount.behaviour.attention import AttentionMeans, BatchWeights, Moments
from headcount.behaviour.tokens import marks_of
from headcount.models.capture import AttentionSource
from models.zoo import build


def test_inputs_are_counted_where_they_have_text() -> None:
    model = build("bert")
    model.config.bos_token_id = 7
    marks = marks_of(model, None)
    means = AttentionMeans(model.eval(), hc.layout(model), marks)
    means.take({"input_ids": torch.tensor([[7, 8, 9], [7, 7, 7]])})
    means.take({"input_ids": torch.tensor([[8, 9]])})
    assert (means.read, means.count) == (3, 2)
    assert means.seen.count[:, 0].tolist() == [2] * 16
    assert means.tokens == 8


def test_weights_are_made_once_for_a_batch() -> None:
    model = build("bert")
    marks = marks_of(model, None)
    weights_of = BatchWeights(marks.sides(model, {"input_ids": torch.tensor([[8, 9, 10]])}))
    attention = torch.full((1, 2, 3, 3), 1 / 3)
    first = weights_of.weights(AttentionSource("encoder", 0, 0), attention)
    assert weights_of.weights(AttentionSource("encoder", 3, 0), attention) is first
    causal = torch.tensor([[1.0, 0, 0], [0.5, 0.5, 0], [0.3, 0.3, 0.4]]).expand(1, 2, 3, 3)
    assert weights_of.weights(AttentionSource("encoder", 3, 0), causal) is not first


def test_attention_over_something_else_than_tokens_is_refused() -> None:
    model = build("bert")
    weights_of = BatchWeights(
        marks_of(model, None).sides(model, {"input_ids": torch.tensor([[8, 9]])})
    )
    with pytest.raises(UnsupportedError, match="3 x 3 positions and there are 2 x 2 tokens"):
        weights_of.weights(AttentionSource("encoder", 1, 0), torch.ones(1, 2, 3, 3))


def test_means_and_errors_leave_out_what_is_not_there() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(5, 2, (40, 3, 4))
    values[rng.random(values.shape) < 0.3] = np.nan
    values[:, 0, 0] = np.nan
    values[1:, 0, 1] = np.nan
    values[0, 0, 1] = 7.0
    moments = Moments((3, 4))
    for start in range(0, 40, 7):
        moments.add(values[start : start + 7])
    count = (~np.isnan(values)).sum(0)
    np.testing.assert_array_equal(moments.count, count)
    several = count > 1
    np.testing.assert_allclose(moments.mean[several], np.nanmean(values[:, several], axis=0))
    spread = np.nanstd(values[:, several], axis=0, ddof=1) / np.sqrt(count[several])
    np.testing.assert_allclose(moments.stderr[several], spread)
    assert np.isnan(moments.mean[0, 0])
    assert moments.mean[0, 1] == 7.0
    assert np.isnan(moments.stderr[0, :2]).all()
