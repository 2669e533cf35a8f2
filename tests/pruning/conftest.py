"""Shared by tests of methods that look at a small BERT's rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from headcount.tasks.encoding import EncodedRows
from models.zoo import build


def rows(many: int = 24) -> EncodedRows:
    random = np.random.default_rng(0)
    return EncodedRows(
        {"input_ids": [random.integers(5, 60, n).tolist() for n in random.integers(4, 12, many)]}
    )


@pytest.fixture(scope="module")
def bert():
    return build("bert", num_hidden_layers=2)


def spd(size, seed):
    x = np.random.default_rng(seed).normal(size=(3 * size, size))
    return x.T @ x / len(x)


def cheapest(a, g, w, gone):
    """The least tr(G ΔᵀAΔ) over all projections that do not read the rows in `gone`."""
    kept = [i for i in range(len(w)) if i not in gone]
    new = np.zeros_like(w)
    if kept:
        new[kept] = np.linalg.solve(a[np.ix_(kept, kept)], a[kept] @ w)
    change = new - w
    return float(np.trace(g @ change.T @ a @ change))


def data(model, rows=8):
    ids = torch.randint(5, 61, (rows, 8), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    return [{"input_ids": ids, "attention_mask": mask}]
