from __future__ import annotations

import numpy as np
import pytest

from headcount.likeness.kernels.compile import kernel
from headcount.likeness.kernels.lanes import store
from headcount.likeness.kernels.nuclear import nuclear_norms, root_terms


@kernel
def _norms(m, n, work, tau, weight, out):
    store(out, 0, nuclear_norms(m, n, work, tau, weight))


def _error(matrices):
    """The largest error over eight matrices, each scaled to a Frobenius norm of 1."""
    matrices = matrices / np.linalg.norm(matrices, axis=(1, 2), keepdims=True)
    n = matrices.shape[1]
    flat = np.ascontiguousarray(matrices.transpose(1, 2, 0)).astype(np.float32).ravel()
    out = np.empty(8, np.float32)
    _norms(flat, n, np.empty(n * 64, np.float32), *root_terms(), out)
    return np.abs(out - np.linalg.svd(matrices, compute_uv=False).sum(-1)).max()


def test_root_terms_are_a_square_root():
    tau, weight = root_terms()
    x = np.geomspace(1e-14, 1, 5000)[:, None]
    assert np.abs((weight * x / (x + tau)).sum(1) / np.sqrt(x[:, 0]) - 1).max() < 1.5e-7
    assert (weight * 1e-20 / (1e-20 + tau)).sum() <= 1e-10


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 24, 65])
def test_random_matrices(n):
    rng = np.random.default_rng(n)
    for _ in range(20):
        assert _error(rng.normal(size=(8, n, n))) < 3e-6


@pytest.mark.parametrize("rank", [1, 2, 7])
def test_matrices_of_low_rank(rank):
    rng = np.random.default_rng(rank)
    for _ in range(20):
        assert _error(rng.normal(size=(8, 24, rank)) @ rng.normal(size=(8, rank, 24))) < 3e-6


def test_matrices_with_singular_values_of_all_sizes():
    rng = np.random.default_rng(0)
    for _ in range(20):
        u, _ = np.linalg.qr(rng.normal(size=(8, 20, 20)))
        v, _ = np.linalg.qr(rng.normal(size=(8, 20, 20)))
        assert _error(u * 10.0 ** rng.uniform(-9, 0, size=(8, 1, 20)) @ v) < 2e-6


def test_columns_so_small_that_their_squares_vanish():
    # a reflector made of such a column is no reflection unless it is left out
    rng = np.random.default_rng(1)
    for _ in range(50):
        matrices = rng.normal(size=(8, 9, 9)) * 10.0 ** rng.uniform(-24, 0, size=(8, 1, 9))
        assert _error(matrices) < 2e-6
        assert _error(matrices.transpose(0, 2, 1)) < 2e-6


def test_lanes_do_not_touch_each_other():
    rng = np.random.default_rng(3)
    matrices = rng.normal(size=(8, 6, 6))
    matrices[1] = 1e-3  # rank one
    matrices[2] = np.eye(6)
    matrices[3] = np.diag([1, 0, 0, 0, 0, 0])
    assert _error(matrices) < 2e-6
