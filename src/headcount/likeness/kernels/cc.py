"""cc: one minus a canonical correlation coefficient, in the form asked for.

With as many columns as samples, plain canonical correlation finds 1 between any two heads, so it
has to be held back in one way or another:

ridge      the default: see `ridge.py`
svcca      mean canonical correlation of the leading directions that hold `variance` of each head's
truncated  the same with a fixed number of directions; the result hangs on that number
rv         the RV coefficient, the limit of ridge for a large kappa
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from headcount.base.errors import UsageError
from headcount.base.names import unknown
from headcount.likeness.kernels.finish import CONSTANT, Floats, finish

METHODS = ("ridge", "svcca", "truncated", "rv")
_SINGLE = (0.05, 2.0)  # the kappas for which single precision is enough


def cc(
    attention: Floats,  # (head, query, key) -> (head, head)
    *,
    method: str = "ridge",
    kappa: float = 0.1,
    variance: float = 0.99,
    rank: int = 10,
) -> Floats:
    """1 - canonical correlation coefficient of the matrices.

    `kappa` is ridge's, the share of the mean eigenvalue that is added to each; `variance` is
    svcca's; `rank` is truncated's.
    """
    check_options(method, kappa, variance, rank)
    if method == "ridge" and _SINGLE[0] <= kappa <= _SINGLE[1]:
        from headcount.likeness.kernels.ridge import ridge

        return ridge(attention, kappa)
    x = attention.astype(np.float64)
    size = np.square(x).sum((1, 2))
    x -= x.mean(1, keepdims=True)
    constant = np.square(x).sum((1, 2)) <= CONSTANT**2 * size
    with np.errstate(invalid="ignore", divide="ignore"):
        if method in ("ridge", "rv"):
            out = _product(x, constant, kappa if method == "ridge" else None)
        else:
            out = _mean_correlation(x, constant, variance if method == "svcca" else rank)
    # a head whose rows are all the same: at 0 from another one, at 1 from every other
    out[constant] = out[:, constant] = 1
    out[np.ix_(constant, constant)] = 0
    return finish(out, attention)


def check_options(method: str, kappa: float, variance: float, rank: int) -> None:
    """Refuse options that make no sense; warn where the method itself is doubtful."""
    if method not in METHODS:
        raise unknown(f"cc has no method '{method}'", method, METHODS)
    if not 0 < kappa < np.inf:
        raise UsageError(f"cc's kappa is a positive number, not {kappa}.")
    if not 0 < variance <= 1:
        raise UsageError(f"cc's variance is a share between 0 and 1, not {variance}.")
    if rank < 1:
        raise UsageError(f"cc's rank is at least 1, not {rank}.")
    if method == "truncated":
        warnings.warn(
            f"Truncated canonical correlation hangs on the number of directions (rank={rank}): "
            "near the number of tokens, any two heads are at distance 0. Prefer method='ridge'.",
            UserWarning,
            stacklevel=3,
        )


def _product(x: NDArray[np.float64], constant: NDArray[np.bool_], kappa: float | None) -> Floats:
    """1 - ⟨P, P'⟩ / (|P| |P'|) with ridge's P, or with P = K (RV) when kappa is None."""
    heads, tokens, _ = x.shape
    p = x @ x.transpose(0, 2, 1)
    if kappa is not None:
        ridge = kappa * np.trace(p, axis1=1, axis2=2) / max(tokens - 1, 1)
        ridge[constant] = 1
        p = np.linalg.solve(p + ridge[:, None, None] * np.eye(tokens), p)
    flat = p.reshape(heads, -1)
    flat /= np.linalg.norm(flat, axis=1, keepdims=True)
    return 1 - flat @ flat.T


def _mean_correlation(
    x: NDArray[np.float64], constant: NDArray[np.bool_], keep: float | int
) -> Floats:
    """1 - mean canonical correlation of leading directions: a share of variance, or a number."""
    from headcount.likeness.kernels.pc import in_lanes, nuclear_of_pairs

    heads, tokens, _ = x.shape
    u, s, _ = np.linalg.svd(x, full_matrices=False)
    count = (s > s[:, :1] * CONSTANT).sum(1)
    if isinstance(keep, int):
        count = np.minimum(count, keep)
    else:
        share = np.cumsum(s**2, axis=1) / np.square(s).sum(1, keepdims=True)
        count = np.minimum(count, 1 + (share < keep - 1e-9).sum(1))
    count[constant] = 0
    most = max(int(count.max()), 1)
    u = u[:, :, :most] * (np.arange(most) < count[:, None])[:, None, :]
    # turning the directions among themselves changes nothing: make them a lower triangle
    lower = np.asarray(np.linalg.qr(u.transpose(0, 2, 1), mode="r")).transpose(0, 2, 1)
    norms = nuclear_of_pairs(in_lanes(lower), heads, tokens, lower.shape[2])
    return 1 - norms / np.minimum.outer(count, count)
