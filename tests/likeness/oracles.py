"""The seven distances in plain float64 NumPy, and attention that is hard on them.

`test_oracles.py` holds these against scipy, scikit-learn and dcor, pair by pair.
"""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

SPREAD = 1e-6
"""What spreads less than this part of its size counts as constant."""


def hard_attention(heads: int, queries: int, keys: int, *, seed: int = 0, causal: bool = False):
    """float32 rows from near uniform to exact one-hot, with zeros and identical heads."""
    rng = np.random.default_rng(seed)
    scale = rng.choice([0.02, 0.3, 1, 3, 8, 30], size=(heads, 1, 1))
    logits = scale * rng.normal(size=(heads, queries, keys))
    # a third of the heads are near each other, at every distance
    near = heads // 3
    logits[:near] = 2 * rng.normal(size=(1, queries, keys))
    logits[:near] += rng.choice([1e-3, 0.03, 0.3], size=(near, 1, 1)) * rng.normal(
        size=(near, queries, keys)
    )
    rows = np.exp(logits - logits.max(-1, keepdims=True))
    holes = rng.random((heads, queries, keys)) < rng.choice([0, 0.3], size=(heads, 1, 1))
    rows[holes & (rows < rows.max(-1, keepdims=True))] = 0
    hot = rng.random(heads) < 0.1
    rows[hot] = rows[hot] == rows[hot].max(-1, keepdims=True)
    if causal:
        rows *= np.tril(np.ones((queries, keys)))
        rows[:, np.arange(queries), np.minimum(np.arange(queries), keys - 1)] += 1e-3
    rows = (rows / rows.sum(-1, keepdims=True)).astype(np.float32)
    rows[-heads // 10 :] = rows[: len(rows[-heads // 10 :])]
    return rows


def cos(a):
    unit = a / np.linalg.norm(a, axis=-1, keepdims=True)
    return 1 - np.einsum("itc,jtc->ij", unit, unit, optimize=True) / a.shape[1]


def corr(a):
    mean = a.mean(-1, keepdims=True)
    x = a - mean
    norm = np.linalg.norm(x, axis=-1, keepdims=True)
    constant = (norm <= SPREAD * mean * np.sqrt(a.shape[2]))[..., 0]
    unit = np.where(constant[..., None], 0, x / np.maximum(norm, 1e-300))
    r = np.einsum("itc,jtc->ijt", unit, unit, optimize=True)
    r += constant[:, None] & constant[None]
    return (1 - r.mean(-1)) / 2


def bc(a):
    return 1 - np.einsum("itc,jtc->ij", np.sqrt(a), np.sqrt(a), optimize=True) / a.shape[1]


def js(a):
    a = a / a.sum(-1, keepdims=True)
    out = np.empty((len(a), len(a)))
    for i, p in enumerate(a):
        m = (p + a) / 2
        safe = np.where(m > 0, m, 1)
        divergence = (xlogy(p, p / safe) + xlogy(a, a / safe)).sum(-1) / 2 / np.log(2)
        out[i] = np.sqrt(np.maximum(divergence, 0)).mean(-1)
    return out


def dcor(a):
    d = np.stack([np.linalg.norm(x[:, None] - x[None], axis=-1) for x in a])
    d = d - d.mean(1, keepdims=True) - d.mean(2, keepdims=True) + d.mean((1, 2), keepdims=True)
    flat, constant = _unit(d, a)
    return _constant_heads(1 - np.sqrt(np.maximum(flat @ flat.T, 0)), constant)


def pc(a):
    x = a - a.mean(1, keepdims=True)
    flat, constant = _unit(x, a)
    x = flat.reshape(x.shape)
    out = np.empty((len(a), len(a)))
    for i in range(len(a)):
        out[i, i:] = np.linalg.svd(x[i].T @ x[i:], compute_uv=False).sum(-1)
        out[i:, i] = out[i, i:]
    return _constant_heads(1 - out, constant)


def cc(a, kappa=0.1):
    x = a - a.mean(1, keepdims=True)
    _, constant = _unit(x, a)
    k = x @ x.transpose(0, 2, 1)
    ridge = kappa * np.trace(k, axis1=1, axis2=2) / max(a.shape[1] - 1, 1)
    ridge[constant] = 1
    p = np.linalg.solve(k + ridge[:, None, None] * np.eye(a.shape[1]), k).reshape(len(a), -1)
    p /= np.maximum(np.linalg.norm(p, axis=1, keepdims=True), 1e-300)
    return _constant_heads(1 - p @ p.T, constant)


def _unit(values, a):
    flat = values.reshape(len(values), -1)
    norm = np.linalg.norm(flat, axis=1)
    constant = norm <= SPREAD * np.linalg.norm(a.reshape(len(a), -1), axis=1)
    return np.where(constant[:, None], 0, flat / np.maximum(norm, 1e-300)[:, None]), constant


def _constant_heads(out, constant):
    out[constant] = out[:, constant] = 1
    out[np.ix_(constant, constant)] = 0
    return out


ORACLES = {"cos": cos, "corr": corr, "js": js, "bc": bc, "dcor": dcor, "pc": pc, "cc": cc}
BARS = {"cos": 1e-6, "corr": 1e-6, "js": 1e-6, "bc": 1e-6, "dcor": 1e-6, "pc": 3e-6, "cc": 3e-6}


def oracle(name: str, attention, **options):
    """The float64 distances of float32 attention, the diagonal set to its exact value."""
    out = ORACLES[name](attention.astype(np.float64), **options)
    np.fill_diagonal(out, 0)
    return out
