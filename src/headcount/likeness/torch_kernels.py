"""The seven distances in plain torch, for attention that is on a GPU.

The same definitions and conventions as the compiled kernels, in double precision where the device
has it, so that both give the same matrices to 1e-5. Work that grows with the pairs goes in slices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from headcount.likeness.kernels.cc import check_options
from headcount.likeness.kernels.check import check_shape, refuse
from headcount.likeness.kernels.finish import CONSTANT

_SLICE = 2**24  # numbers in the largest intermediate tensor


def checked(attention: Tensor) -> Tensor:  # (head, query, key)
    """`attention` in the device's best precision, its rows summing to 1; refused like an array."""
    check_shape(tuple(attention.shape))
    half = attention.dtype.itemsize < 4
    best = torch.float32 if attention.device.type == "mps" else torch.float64
    values = attention.detach().to(best)
    sums = values.sum(-1)
    bad = ~torch.isfinite(values).all(-1) | (values < 0).any(-1)
    worst = torch.where(bad, torch.inf, (sums - 1).abs()).amax(-1)
    refuse(worst.cpu().numpy(), 2e-2 if half else 1e-3)
    return values / sums[..., None]


def cos(attention: Tensor) -> Tensor:  # (head, query, key) -> (head, head)
    """1 - cosine of the rows, mean over tokens."""
    rows = attention / attention.norm(dim=-1, keepdim=True)
    return _finish(1 - _mean_product(rows), attention)


def corr(attention: Tensor) -> Tensor:
    """(1 - Pearson correlation of the rows) / 2, mean over tokens."""
    mean = attention.mean(-1, keepdim=True)
    rows = attention - mean
    norm = rows.norm(dim=-1, keepdim=True)
    constant = norm <= CONSTANT * mean * math.sqrt(attention.shape[2])
    rows = torch.where(constant, 0, rows / norm.clamp_min(1e-30))
    rows = torch.cat([rows, constant.to(rows.dtype)], -1)
    return _finish((1 - _mean_product(rows)) / 2, attention)


def bc(attention: Tensor) -> Tensor:
    """1 - Bhattacharyya coefficient of the rows, mean over tokens."""
    return _finish(1 - _mean_product(attention.sqrt()), attention)


def pq(attention: Tensor) -> Tensor:
    """1 - product of the rows, mean over tokens."""
    return _finish(1 - _mean_product(attention), attention)


def js(attention: Tensor) -> Tensor:
    """Jensen–Shannon distance (base 2) of the rows, mean over tokens."""
    heads, tokens, keys = attention.shape
    out = attention.new_zeros(heads, heads)
    least = 1e-15 if attention.dtype == torch.float64 else 1e-7
    for part in _slices(heads, tokens * heads * keys):
        p, q = attention[part, None], attention[None]
        s = p + q
        t = (p - q) / s.clamp_min(1e-37)
        # 0 times the logarithm of 0 is 0
        up = (1 + t) * torch.log1p(t.clamp_min(least - 1))
        down = (1 - t) * torch.log1p((-t).clamp_min(least - 1))
        divergence = (s * (up + down)).sum(-1) / (4 * math.log(2))
        out[part] = divergence.clamp_min(0).sqrt().mean(-1)
    return _finish(out, attention)


def dcor(attention: Tensor) -> Tensor:
    """1 - distance correlation of the matrices, rows as samples."""
    apart = torch.cdist(attention, attention, compute_mode="donot_use_mm_for_euclid_dist")
    apart = apart - apart.mean(1, keepdim=True) - apart.mean(2, keepdim=True)
    apart = apart - apart.mean((1, 2), keepdim=True)  # the two means took the whole mean twice
    flat, constant = _unit(apart, CONSTANT * attention.flatten(1).norm(dim=1))
    out = 1 - (flat @ flat.T).clamp_min(0).sqrt()
    return _finish(_with_constant(out, constant), attention)


def pc(attention: Tensor) -> Tensor:
    """1 - Procrustes (RLS) coefficient of the matrices, columns centred."""
    x, constant = _centred_unit(attention)
    heads, tokens, keys = x.shape
    if tokens < keys:  # turned over its columns, each head is a triangle of its rows
        x = torch.linalg.qr(x.mT, mode="r").R.mT
    out = x.new_zeros(heads, heads)
    for part in _slices(heads, heads * x.shape[2] ** 2):
        out[part] = 1 - torch.linalg.svdvals(x[part, None].mT @ x[None]).sum(-1)
    return _finish(_with_constant(out, constant), attention)


def cc(
    attention: Tensor,
    *,
    method: str = "ridge",
    kappa: float = 0.1,
    variance: float = 0.99,
    rank: int = 10,
) -> Tensor:
    """1 - canonical correlation coefficient of the matrices; options as in `kernels/cc.py`."""
    check_options(method, kappa, variance, rank)
    x, constant = _centred_unit(attention)
    heads, tokens, _ = x.shape
    if method in ("svcca", "truncated"):
        out = _mean_correlation(x, constant, variance if method == "svcca" else rank)
        return _finish(_with_constant(out, constant), attention)
    p = x @ x.mT
    if method == "ridge":
        ridge = torch.eye(tokens, dtype=x.dtype, device=x.device) * (kappa / max(tokens - 1, 1))
        p = torch.linalg.solve(p + ridge, p)
    flat, _ = _unit(p, torch.zeros(heads, dtype=x.dtype, device=x.device))
    return _finish(_with_constant(1 - flat @ flat.T, constant), attention)


KERNELS: dict[str, Callable[..., Tensor]] = {
    "cos": cos,
    "corr": corr,
    "js": js,
    "bc": bc,
    "pq": pq,
    "dcor": dcor,
    "pc": pc,
    "cc": cc,
}


def _mean_correlation(x: Tensor, constant: Tensor, keep: float | int) -> Tensor:
    u, s, _ = torch.linalg.svd(x, full_matrices=False)
    count = (s > s[:, :1] * CONSTANT).sum(1)
    if isinstance(keep, int):
        count = count.clamp_max(keep)
    else:
        share = s.square().cumsum(1) / s.square().sum(1, keepdim=True)
        count = torch.minimum(count, 1 + (share < keep - 1e-9).sum(1))
    count = torch.where(constant, 0, count)
    most = max(int(count.max()), 1)
    u = u[:, :, :most] * (torch.arange(most, device=x.device) < count[:, None])[:, None]
    out = x.new_zeros(len(x), len(x))
    for part in _slices(len(x), len(x) * most**2):
        out[part] = torch.linalg.svdvals(u[part, None].mT @ u[None]).sum(-1)
    return 1 - out / torch.minimum(count[:, None], count[None])


def _mean_product(rows: Tensor) -> Tensor:
    flat = rows.flatten(1)
    return flat @ flat.T / rows.shape[1]


def _unit(values: Tensor, least: Tensor) -> tuple[Tensor, Tensor]:
    """Each head as a vector of length 1, or 0 where it is no longer than `least`; and where."""
    flat = values.flatten(1)
    norm = flat.norm(dim=1)
    constant = norm <= least
    return torch.where(constant[:, None], 0, flat / norm.clamp_min(1e-30)[:, None]), constant


def _centred_unit(attention: Tensor) -> tuple[Tensor, Tensor]:
    """Columns centred, each head of length 1; and which heads have only equal rows."""
    x = attention - attention.mean(1, keepdim=True)
    flat, constant = _unit(x, CONSTANT * attention.flatten(1).norm(dim=1))
    return flat.view_as(x), constant


def _with_constant(out: Tensor, constant: Tensor) -> Tensor:
    """Heads with only equal rows are at 0 from each other and at 1 from every other."""
    either = constant[:, None] | constant[None]
    both = constant[:, None] & constant[None]
    return torch.where(both, 0, torch.where(either, 1, out))


def _finish(values: Tensor, attention: Tensor) -> Tensor:
    """Symmetric, within [0, 1], exactly 0 for identical heads, as float32."""
    out = values.triu(1).clamp(0, 1)
    near = ((out < 1e-4) & torch.ones_like(out, dtype=torch.bool).triu(1)).nonzero()
    for part in _slices(len(near), attention[0].numel()):
        i, j = near[part].T
        same = (attention[i] == attention[j]).flatten(1).all(1)
        out[i[same], j[same]] = 0
    return (out + out.T).float()


def _slices(count: int, size: int) -> Iterator[slice]:
    """Slices of range(count) whose elements of `size` numbers stay below the limit."""
    step = max(1, _SLICE // max(size, 1))
    for start in range(0, count, step):
        yield slice(start, start + step)
