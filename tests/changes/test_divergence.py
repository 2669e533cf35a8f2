from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon

from headcount.base.errors import UnsupportedError, UsageError
from headcount.changes.divergence import fitting, js_divergence, l2_distance


def random_attention(seed, batch, heads, queries, keys, sharp=3.0):
    generator = torch.Generator().manual_seed(seed)
    scores = sharp * torch.randn(batch, heads, queries, keys, generator=generator)
    return scores.double().softmax(-1)


@given(
    seed=st.integers(0, 1000),
    shape=st.tuples(*[st.integers(1, 4)] * 4),
    sharp=st.sampled_from([0.01, 1.0, 30.0]),
)
def test_it_is_scipys_squared_in_bits(seed, shape, sharp):
    p, q = random_attention(seed, *shape, sharp), random_attention(seed + 1, *shape, sharp)
    expected = np.mean(jensenshannon(p.numpy(), q.numpy(), base=2, axis=-1) ** 2, axis=-1)
    found = js_divergence(p, q).numpy()
    assert found == pytest.approx(expected, abs=1e-12)
    assert (found >= 0).all()
    assert (found <= 1 + 1e-12).all()
    assert found == pytest.approx(js_divergence(q, p).numpy(), abs=1e-15)
    assert (js_divergence(p, p) == 0).all()


def test_padding_is_neither_asked_nor_looked_at():
    p, q = random_attention(0, 2, 3, 4, 5), random_attention(1, 2, 3, 4, 5)
    queries = torch.tensor([[1, 1, 1, 0], [0, 1, 1, 1]]).bool()
    keys = torch.tensor([[1, 1, 1, 1, 0], [0, 0, 1, 1, 1]]).bool()
    found = js_divergence(p, q, queries, keys)
    for row in range(2):
        cut = [x[row][:, queries[row]][:, :, keys[row]].numpy() for x in (p, q)]
        expected = np.mean(jensenshannon(*cut, base=2, axis=-1) ** 2, axis=-1)
        assert found[row].numpy() == pytest.approx(expected, abs=1e-12)


def test_a_row_that_looks_nowhere_does_not_count():
    p, q = random_attention(0, 1, 2, 3, 4), random_attention(1, 1, 2, 3, 4)
    expected = js_divergence(p[:, :, 1:], q[:, :, 1:])
    p[:, :, 0] = q[:, :, 0] = 0
    torch.testing.assert_close(js_divergence(p, q), expected)


def test_windows_of_one_input_count_together():
    p, q = random_attention(0, 6, 2, 3, 3), random_attention(1, 6, 2, 3, 3)
    found = js_divergence(p, q, batch=2)
    expected = js_divergence(p, q).reshape(2, 3, 2).mean(1)
    torch.testing.assert_close(found, expected)


def test_a_layer_without_heads():
    assert js_divergence(torch.zeros(2, 0, 3, 3), torch.zeros(2, 0, 3, 3)).shape == (2, 0)


def test_padding_only_is_refused():
    p = random_attention(0, 1, 2, 3, 3)
    with pytest.raises(UsageError, match="padding only"):
        js_divergence(p, p, torch.zeros(1, 3).bool())


def test_other_places_are_refused():
    with pytest.raises(UnsupportedError, match="different places"):
        js_divergence(random_attention(0, 1, 2, 3, 3), random_attention(0, 1, 2, 3, 4))
    with pytest.raises(UnsupportedError, match="differ in shape"):
        l2_distance(torch.zeros(1, 2, 3), torch.zeros(1, 2, 4))
    with pytest.raises(UnsupportedError, match="has 5 places but the mask has 3"):
        fitting(torch.tensor([[1, 1, 0]]), 5, 1, "encoder layer 0")


def test_l2_is_the_mean_length_over_tokens():
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randn(2, 2, 3, 4, generator=generator)
    tokens = torch.tensor([[1, 1, 0], [1, 1, 1]]).bool()
    apart, relative = l2_distance(a, b, tokens)
    for row in range(2):
        lengths = [
            (float((a - b)[row, t].norm()), float(a[row, t].norm()))
            for t in range(3)
            if tokens[row, t]
        ]
        assert float(apart[row]) == pytest.approx(np.mean([x for x, _ in lengths]), rel=1e-6)
        assert float(relative[row]) == pytest.approx(np.mean([x / y for x, y in lengths]), rel=1e-6)
    every = l2_distance(a, b)[0]
    assert float(every[0]) == pytest.approx(float((a - b)[0].norm(dim=-1).mean()), rel=1e-6)


def test_a_mask_without_padding_is_none_whatever_its_length():
    assert fitting(torch.ones(1, 3), 5, 1, "layer") is None
    assert fitting(None, 5, 1, "layer") is None
    assert fitting(torch.tensor([[1, 0]]), 2, 1, "layer").tolist() == [[True, False]]
