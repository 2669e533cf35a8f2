from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.base.errors import UsageError
from headcount.likeness.inputs import even_order
from headcount.tasks.encoding import encode_texts


@given(st.integers(1, 200), st.integers(1, 250), st.integers(0, 5))
def test_an_even_sample_is_a_sample(rows, limit, seed):
    lengths = np.random.default_rng(seed).integers(3, 90, rows)
    order = even_order(lengths, limit, seed)
    assert len(order) == min(rows, limit)
    assert len(set(order.tolist())) == len(order)
    assert np.array_equal(order, even_order(lengths, limit, seed))


def test_every_beginning_is_even_over_lengths():
    lengths = np.random.default_rng(0).permutation(np.repeat(np.arange(1000), 5))
    order = even_order(lengths, 1000, seed=4)
    for size in (16, 64, 100, 500):
        quarters = np.histogram(lengths[order[:size]], [0, 250, 500, 750, 1000])[0]
        assert np.abs(quarters - size / 4).max() <= 3, size
    drawn = lengths[even_order(lengths, 1000, seed=5)]
    assert abs(drawn.mean() - lengths.mean()) < 1


def test_seeds_draw_others():
    lengths = np.full(100, 7)
    assert set(even_order(lengths, 10, 0)) != set(even_order(lengths, 10, 1))


def test_mixed_texts_are_refused(tokenizer):
    with pytest.raises(UsageError, match="begin as texts, but one is 3"):
        encode_texts(["a", 3], tokenizer)
    with pytest.raises(UsageError, match="begin as pairs of texts, but one is 'a'"):
        encode_texts([("a", "b"), "a"], tokenizer)
    assert len(encode_texts(["a king", "b"], tokenizer)) == 2
