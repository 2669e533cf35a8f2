from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import subspace_angles

from headcount.errors import UsageError
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


def test_heads_that_are_independent_are_at_one_by_dcor():
    """Rounding of 1e-9 in a square that is 0 would be 3e-5 in its root."""
    rng = np.random.default_rng(0)
    token, same = np.arange(20), np.full(20, 0)
    some = [rng.dirichlet(np.full(20, width), 5)[token % 5] for width in (0.05, 1, 10)]
    others = [rng.dirichlet(np.full(20, width), 4)[token // 5] for width in (0.05, 1, 10)]
    constant = rng.dirichlet(np.ones(20), 1)[same]
    attention = np.stack([*some, *others, constant]).astype(np.float32)
    found = distances(attention, "dcor")["dcor"]
    assert np.abs(found[:3, 3:] - 1).max() <= 1e-6
    assert np.abs(found - oracle("dcor", attention)).max() <= 1e-6


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


def test_half_precision_rows_are_scaled_to_sum_to_one():
    attention = hard_attention(6, 40, 40, seed=9)
    half = torch.tensor(attention).bfloat16()
    assert (half.float().sum(-1) - 1).abs().max() > 1e-3
    scaled = half.double() / half.double().sum(-1, keepdim=True)
    found = distances(half, "js")["js"]
    assert np.abs(found - oracle("js", scaled.numpy())).max() < 1e-6


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        ((2, 1, 0), np.nan, "head 2 holds NaN"),
        ((1, 0, 0), np.inf, "head 1 holds NaN"),
        ((1, 0, 0), -0.5, "head 1 holds NaN, infinite or negative"),
        ((3, 2, 1), 0.9, "head 3 has rows that do not sum to 1"),
    ],
)
def test_what_is_no_attention_is_refused_with_its_head(place, value, says):
    attention = np.full((5, 4, 4), 0.25, np.float32)
    attention[place] = value
    with pytest.raises(UsageError, match=says):
        distances(attention, "cos")


def test_several_bad_heads_are_counted():
    attention = np.full((5, 4, 4), 0.25, np.float32)
    attention[1:] *= 0.5
    with pytest.raises(UsageError, match=r"head 1 \(and 3 more heads\) .*off by 0.5"):
        distances(attention, "cos")


@pytest.mark.parametrize("shape", [(4, 4), (0, 4, 4), (3, 0, 4), (1, 2, 4, 4)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(UsageError, match="three axes"):
        distances(np.full(shape, 0.25, np.float32), "cos")


def test_an_unknown_name_is_refused_with_a_hint():
    with pytest.raises(UsageError, match=r"no distance 'coss'\. Did you mean 'cos'"):
        distances(hard_attention(2, 3, 3), "coss")


def test_options_that_fit_nothing_are_refused():
    attention = hard_attention(2, 3, 3)
    with pytest.raises(UsageError, match="'cc', which is not among"):
        distances(attention, "js", cc={"kappa": 1})
    with pytest.raises(UsageError, match=r"'cc' has no option 'kapa'\. Did you mean 'kappa'"):
        distances(attention, "cc", cc={"kapa": 1})
    with pytest.raises(UsageError, match="at least one thread"):
        distances(attention, "js", threads=0)


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


@pytest.mark.parametrize("kappa", [1e-4, 0.05, 2.0, 100.0])
def test_ridge_at_other_kappas(kappa):
    attention = hard_attention(40, 15, 15, seed=10)
    found = distances(attention, "cc", cc={"kappa": kappa})["cc"]
    assert np.abs(found - oracle("cc", attention, kappa=kappa)).max() <= BARS["cc"]


def test_rv_is_the_limit_of_ridge():
    attention = hard_attention(20, 15, 15, seed=11)
    rv = distances(attention, "cc", cc={"method": "rv"})["cc"]
    assert np.abs(rv - oracle("cc", attention, kappa=1e9)).max() < 1e-6


def _leading(head, keep):
    u, s, _ = np.linalg.svd(head - head.mean(0), full_matrices=False)
    if isinstance(keep, float):
        keep = 1 + int((np.cumsum(s**2) / (s**2).sum() < keep).sum())
    return u[:, : min(keep, int((s > 1e-6 * s[0]).sum()))]


@pytest.mark.parametrize(("method", "keep"), [("svcca", 0.99), ("truncated", 3)])
@pytest.mark.filterwarnings("ignore:Truncated")
def test_svcca_and_truncated_are_mean_canonical_correlations(method, keep):
    attention = hard_attention(12, 15, 15, seed=12)
    found = distances(attention, "cc", cc={"method": method, "rank": 3})["cc"]
    wide = attention.astype(np.float64)
    for i in range(12):
        for j in range(i):
            a, b = _leading(wide[i], keep), _leading(wide[j], keep)
            mean = np.cos(subspace_angles(a, b)).mean()
            assert found[i, j] == pytest.approx(1 - mean, abs=3e-6)


def test_truncated_warns_that_its_result_hangs_on_the_rank():
    with pytest.warns(UserWarning, match=r"number of directions \(rank=3\)"):
        distances(hard_attention(3, 5, 5), "cc", cc={"method": "truncated", "rank": 3})


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"method": "rigde"}, "Did you mean 'ridge'"),
        ({"kappa": 0}, "positive"),
        ({"variance": 1.5}, "between 0 and 1"),
        ({"rank": 0}, "at least 1"),
    ],
)
def test_wrong_options_of_cc_are_refused(options, says):
    with pytest.raises(UsageError, match=says):
        distances(hard_attention(3, 5, 5), "cc", cc=options)
