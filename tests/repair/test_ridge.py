from __future__ import annotations

import numpy as np
import pytest
import torch

from headcount.base.errors import UsageError
from headcount.repair.ridge import NormalEquations


@pytest.mark.parametrize("bias", [True, False])
def test_equals_least_squares_over_stored_rows(bias):
    torch.manual_seed(0)
    x, y = torch.randn(50, 6), torch.randn(50, 4)
    start = torch.randn(6 + bias, 4, dtype=torch.float64)
    sums = NormalEquations(6, 4, bias=bias)
    for piece in range(0, 50, 7):
        sums.add(x[piece : piece + 7], y[piece : piece + 7])
    full = torch.cat([x, torch.ones(50, 1)], 1) if bias else x
    full = full.double().numpy()
    penalty = 0.1 * np.mean(np.diag(full.T @ full))
    above = np.concatenate([full, np.sqrt(penalty) * np.eye(6 + bias)])
    target = np.concatenate([y.double().numpy(), np.sqrt(penalty) * start.numpy()])
    expected = np.linalg.lstsq(above, target, rcond=None)[0]
    found = sums.solve(start, 0.1, "here")
    assert found.numpy() == pytest.approx(expected, abs=1e-10)
    residual = np.square(full @ found.numpy() - y.numpy()).sum() / np.square(y.numpy()).sum()
    assert sums.error(found) == pytest.approx(residual, rel=1e-6)


def test_a_bias_alone_is_the_mean():
    sums = NormalEquations(0, 2, bias=True)
    sums.add(torch.zeros(4, 0), torch.tensor([[1.0, 0], [3, 0], [5, 0], [7, 0]]))
    assert sums.solve(torch.zeros(1, 2).double(), 0.0, "here").tolist() == [[4.0, 0.0]]


def test_refusals():
    start = torch.zeros(3, 2).double()
    sums = NormalEquations(3, 2, bias=False)
    with pytest.raises(UsageError, match="No token of the inputs counts"):
        sums.solve(start, 1e-3, "here")
    sums.add(torch.ones(9, 3), torch.ones(9, 2))  # three equal columns
    with pytest.raises(UsageError, match=r"encoder layer 1 is singular: 9 tokens for 3 unknowns"):
        sums.solve(start, 0.0, "encoder layer 1")
    assert sums.solve(start, 1e-3, "here") == pytest.approx(1 / 3, rel=1e-2)
    sums.add(torch.full((1, 3), float("nan")), torch.ones(1, 2))
    with pytest.raises(UsageError, match="not all numbers"):
        sums.solve(start, 1e-3, "here")


def test_nothing_but_zeros_is_singular_even_with_a_ridge():
    sums = NormalEquations(3, 2, bias=False)
    sums.add(torch.zeros(9, 3), torch.ones(9, 2))
    with pytest.raises(UsageError, match="singular"):
        sums.solve(torch.zeros(3, 2).double(), 1e-3, "here")


def test_scales_are_the_least_squares_solution_over_one_factor_a_head():
    """The oracle has each head's output as a regressor, and a column of ones for each bias."""
    random = np.random.default_rng(3)
    x, y = random.normal(size=(50, 6)) + 0.5, random.normal(size=(50, 4))
    w, b = random.normal(size=(6, 4)), random.normal(size=(1, 4))
    parts = [x[:, :3] @ w[:3], x[:, 3:] @ w[3:]]
    for bias in (True, False):
        sums = NormalEquations(6, 4, bias=bias)
        sums.add(torch.from_numpy(x), torch.from_numpy(y))
        start = torch.from_numpy(np.concatenate([w, b]) if bias else w)
        columns = [part.ravel() for part in parts]
        if bias:
            columns += [np.tile(np.eye(4)[k], 50) for k in range(4)]
        best = np.linalg.lstsq(np.stack(columns, 1), y.ravel(), rcond=None)[0]
        solved = sums.solve_scales(start, 3, 0.0, "here").numpy()
        expected = w * np.repeat(best[:2], 3)[:, None]
        assert np.allclose(solved[:6], expected, atol=1e-9)
        if bias:
            assert np.allclose(solved[6], best[2:], atol=1e-9)
        # a strong ridge keeps the factors at 1
        near = sums.solve_scales(start, 3, 1e9, "here").numpy()
        assert np.allclose(near[:6], w, atol=1e-6)


def least(x, y, start, ridges):
    """‖x W - y‖² + Σ ridge ‖W - W₀‖², as a function of W."""
    return lambda w: float(
        np.square(x @ w - y).sum() + (ridges[:, None] * np.square(w - start)).sum()
    )


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kept", [3, 0])
def test_a_path_of_low_rank_is_the_best_of_its_rank(bias, kept):
    """The oracle goes back and forth between the factors of the path, each by least squares over
    the stored rows, from many beginnings; at full rank it is one least squares."""
    random = np.random.default_rng(5)
    x = random.normal(size=(60, kept + 5)) @ random.normal(size=(kept + 5, kept + 5)) + 0.3
    y = x[:, kept:] @ random.normal(size=(5, 4)) + random.normal(size=(60, 4))
    full = np.concatenate([x, np.ones((60, 1))], 1) if bias else x
    start = random.normal(size=(full.shape[1], 4))
    on_path = np.isin(np.arange(full.shape[1]), np.arange(kept, kept + 5))
    squares, ridges = np.diag(full.T @ full), np.zeros(full.shape[1])
    for part in (on_path, ~on_path):
        ridges[part] = 0.05 * squares[part].mean() if part.any() else 0
    target = least(full, y, start, ridges)
    root = np.sqrt(ridges)
    above = np.concatenate([full, np.diag(root)])
    wanted = np.concatenate([y, root[:, None] * start])

    def found(rank):
        sums = NormalEquations(kept + 5, 4, bias=bias, path=5, rank=rank)
        sums.add(torch.from_numpy(x), torch.from_numpy(y))
        return sums.solve(torch.from_numpy(start), 0.05, "here").numpy()

    assert found(5) == pytest.approx(np.linalg.lstsq(above, wanted, rcond=None)[0], abs=1e-9)

    def alternating(rank):
        down = random.normal(size=(5, rank))
        for _ in range(600):
            by_down = np.concatenate([above[:, ~on_path], above[:, on_path] @ down], 1)
            rows = np.linalg.lstsq(by_down, wanted, rcond=None)[0]
            others, up = rows[: (~on_path).sum()], rows[(~on_path).sum() :]
            # the other factor: vec(x D U) = (Uᵀ ⊗ x) vec(D)
            left = wanted - above[:, ~on_path] @ others
            kron = np.kron(up.T, above[:, on_path])
            down = np.linalg.lstsq(kron, left.T.ravel(), rcond=None)[0].reshape(rank, 5).T
            down = np.linalg.qr(down)[0]
        by_down = np.concatenate([above[:, ~on_path], above[:, on_path] @ down], 1)
        rows = np.linalg.lstsq(by_down, wanted, rcond=None)[0]
        w = np.zeros_like(start)
        w[~on_path], w[on_path] = rows[: (~on_path).sum()], down @ rows[(~on_path).sum() :]
        return w

    for rank in (1, 2):
        mine = found(rank)
        assert np.linalg.matrix_rank(mine[on_path], tol=1e-8) == rank
        best = min((alternating(rank) for _ in range(3)), key=target)
        assert target(mine) == pytest.approx(target(best), rel=1e-9)
        assert mine == pytest.approx(best, abs=1e-4)


def test_scales_leave_a_path_as_it_is():
    random = np.random.default_rng(7)
    x, y = random.normal(size=(50, 9)), random.normal(size=(50, 4))
    start = torch.from_numpy(random.normal(size=(10, 4)))
    sums = NormalEquations(9, 4, bias=True, path=3, rank=3)
    sums.add(torch.from_numpy(x), torch.from_numpy(y))
    solved = sums.solve_scales(start, 3, 1e-3, "here")
    without = NormalEquations(6, 4, bias=True)
    path = torch.from_numpy(x[:, 6:]) @ start[6:9]
    without.add(torch.from_numpy(x[:, :6]), torch.from_numpy(y) - path)
    rows = torch.cat([start[:6], start[9:]])
    expected = without.solve_scales(rows, 3, 1e-3, "here")
    assert torch.allclose(solved[[0, 1, 2, 3, 4, 5, 9]], expected)
    assert torch.equal(solved[6:9], start[6:9])
    # and where no head is left
    alone = NormalEquations(3, 4, bias=True, path=3, rank=3)
    alone.add(torch.from_numpy(x[:, 6:]), torch.from_numpy(y))
    mean = (torch.from_numpy(y) - path).mean(0)
    assert torch.allclose(alone.solve_scales(start[6:], 3, 0.0, "here")[3], mean)
