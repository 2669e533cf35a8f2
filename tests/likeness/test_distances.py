from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headcount.base.errors import UsageError
from headcount.likeness.distances import DISTANCES, SENTENCE_BASED, TOKEN_BASED, distances
from likeness.oracles import BARS, ORACLES, hard_attention, oracle

NAMES = tuple(ORACLES)
UPPER = 192 * 191 // 2
SHAPES = {
    "square": {"queries": 25, "keys": 25},
    "causal": {"queries": 25, "keys": 25, "causal": True},
    "cross": {"queries": 6, "keys": 21},
    "tall": {"queries": 21, "keys": 6},
}


def rows(*values):
    """Attention of one head from rows that are scaled to sum to 1."""
    array = np.array(values, np.float32)
    return array / array.sum(-1, keepdims=True)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", NAMES)
def test_every_pair_is_as_near_to_the_oracle_as_promised(name, shape):
    attention = hard_attention(192, seed=1, **SHAPES[shape])
    found = distances(attention, name)[name]
    upper = np.triu_indices(192, 1)
    assert len(upper[0]) == UPPER > 18_000
    assert np.abs(found - oracle(name, attention))[upper].max() <= BARS[name]


@pytest.mark.parametrize("name", NAMES)
def test_long_inputs(name):
    attention = hard_attention(10, 131, 131, seed=2, causal=True)
    assert np.abs(distances(attention, name)[name] - oracle(name, attention)).max() <= BARS[name]


@pytest.mark.parametrize("name", NAMES)
def test_zero_on_itself_symmetric_and_between_0_and_1(name):
    attention = hard_attention(60, 12, 12, seed=3)
    found = distances(attention, name)[name]
    assert found.dtype == np.float32
    assert np.isfinite(found).all()
    assert found.min() >= 0
    assert found.max() <= 1
    assert np.array_equal(found, found.T)
    assert not found.diagonal().any()


@pytest.mark.parametrize("name", NAMES)
def test_identical_heads_are_at_exactly_zero(name):
    attention = hard_attention(30, 17, 17, seed=4)
    attention[[3, 11, 29]] = attention[7]
    found = distances(attention, name)[name]
    assert not found[np.ix_([3, 7, 11, 29], [3, 7, 11, 29])].any()
    assert (found[7] > 0).sum() >= 15


@given(
    shape=st.tuples(st.integers(1, 9), st.integers(1, 7), st.integers(1, 7)),
    seed=st.integers(0, 1000),
)
def test_any_small_shape(shape, seed):
    attention = hard_attention(*shape, seed=seed)
    for name, found in distances(attention, NAMES).items():
        assert np.abs(found - oracle(name, attention)).max() <= BARS[name]
        assert np.array_equal(found, found.T)


def test_single_token_inputs_compare_by_token_only():
    attention = hard_attention(8, 1, 9, seed=6)
    found = distances(attention, NAMES)
    for name in TOKEN_BASED:
        assert found[name].max() > 0.1
    for name in SENTENCE_BASED:  # one row does not vary, in any head
        assert not found[name].any()


def test_one_hot_rows():
    one, other = np.eye(4, dtype=np.float32)[[0, 1, 2]], np.eye(4, dtype=np.float32)[[3, 3, 3]]
    found = distances(np.stack([one, other]), TOKEN_BASED)
    assert found["cos"][0, 1] == found["bc"][0, 1] == found["js"][0, 1] == 1
    assert found["corr"][0, 1] == pytest.approx((1 + 1 / 3) / 2)


def test_a_constant_row_correlates_with_constant_rows_only():
    flat, sloped = rows([1, 1, 1], [1, 1, 1]), rows([1, 2, 3], [3, 2, 1])
    mixed = rows([1, 1, 1], [3, 2, 1])
    found = distances(np.stack([flat, sloped, mixed, flat]), "corr")["corr"]
    assert found[0, 3] == 0  # both constant: r = 1
    assert found[0, 1] == 0.5  # one constant: r = 0
    assert found[0, 2] == 0.25
    assert found[1, 2] == 0.25


@pytest.mark.parametrize("name", SENTENCE_BASED)
def test_heads_whose_rows_are_all_the_same_have_no_sentence_distance_but_to_each_other(name):
    same, also = rows([1, 2, 3], [1, 2, 3]), rows([5, 1, 1], [5, 1, 1])
    varied = rows([1, 2, 3], [3, 2, 1])
    found = distances(np.stack([same, also, varied]), name)[name]
    assert found[0, 1] == 0
    assert found[0, 2] == found[1, 2] == 1


@pytest.mark.parametrize("name", NAMES)
def test_one_head_and_one_token(name):
    assert distances(np.ones((1, 1, 1), np.float32), name)[name].tolist() == [[0]]


def test_names_as_one_string_and_in_the_order_asked():
    attention = hard_attention(3, 4, 4)
    assert list(distances(attention, "bc")) == ["bc"]
    assert list(distances(attention, ["js", "cos"])) == ["js", "cos"]
    assert list(distances(attention)) == ["js"]


def test_threads_do_not_change_the_result():
    attention = hard_attention(50, 13, 13, seed=7)
    one, two = distances(attention, NAMES, threads=1), distances(attention, NAMES, threads=2)
    for name in NAMES:
        assert np.abs(one[name] - two[name]).max() < 3e-7


def test_tensors_and_other_memory_layouts_give_the_same():
    attention = hard_attention(10, 6, 6, seed=8)
    wanted = distances(attention, NAMES)
    turned = np.asfortranarray(attention)
    for given_ in (torch.tensor(attention), torch.tensor(attention, requires_grad=True), turned):
        found = distances(given_, NAMES)
        assert all(np.array_equal(found[name], wanted[name]) for name in NAMES)
    double = distances(attention.astype(np.float64), NAMES)
    assert all(np.array_equal(double[name], wanted[name]) for name in NAMES)


@pytest.fixture
def registered():
    """Add distances for one test only."""
    before = dict(DISTANCES._entries)
    yield DISTANCES.add
    DISTANCES._entries.clear()
    DISTANCES._entries.update(before)


def test_a_registered_distance_is_used_by_its_name_with_its_options(registered):
    def first_key(attention, *, power=1.0):
        gap = np.abs(attention[:, None, 0, 0] - attention[None, :, 0, 0])
        return gap**power

    registered("mine", first_key, "difference in the first weight")
    attention = hard_attention(4, 3, 3)
    found = distances(attention, ["mine", "cos"], mine={"power": 0.5})
    assert np.allclose(found["mine"], first_key(attention, power=0.5))
    assert np.abs(found["cos"] - oracle("cos", attention)).max() < 1e-6


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda a: np.zeros((2, 3)), "shape"),
        (lambda a: np.full((3, 3), np.nan), "not finite"),
        (lambda a: 2 * (1 - np.eye(3)), "outside"),
        (lambda a: np.triu(np.ones((3, 3)), 1), "not symmetric"),
        (lambda a: np.ones((3, 3)), "zeros on its diagonal"),
    ],
)
def test_a_registered_distance_that_is_none_is_refused(registered, wrong, says):
    registered("wrong", wrong, "wrong")
    with pytest.raises(UsageError, match=f"'wrong' .*{says}"):
        distances(hard_attention(3, 2, 2), "wrong")
