"""What the kernels take as attention, and what they refuse."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from headcount.base.errors import UsageError
from headcount.likeness.kernels.compile import summing_kernel
from headcount.likeness.kernels.finish import Floats
from headcount.likeness.kernels.threads import spread

_EXACT = 1e-5
"""Rows this near to a sum of 1 are taken as they are, others within tolerance are scaled to it."""


def checked(attention: ArrayLike, tolerance: float = 1e-3) -> Floats:
    """`attention` as a contiguous float32 array (head, query, key) whose rows sum to 1."""
    array = np.ascontiguousarray(attention, dtype=np.float32)
    check_shape(array.shape)
    worst = np.concatenate(spread(lambda low, high: _deviations(array, low, high), len(array)))
    refuse(worst, tolerance)
    if worst.max() > _EXACT:
        array = array / array.sum(-1, keepdims=True, dtype=np.float64).astype(np.float32)
    return array


def check_shape(shape: tuple[int, ...]) -> None:
    """Refuse anything but heads x queries x keys with at least one of each."""
    if len(shape) != 3 or 0 in shape:
        raise UsageError(
            f"Attention has three axes (head, query, key), none of them empty, not the shape "
            f"{tuple(shape)}."
        )


def refuse(worst: Floats, tolerance: float) -> None:
    """Name the first head that holds NaN, a negative number, or a row that is no distribution."""
    bad = np.flatnonzero(~(worst <= tolerance))
    if not bad.size:
        return
    head, value = int(bad[0]), float(worst[bad[0]])
    more = f" (and {bad.size - 1} more heads)" if bad.size > 1 else ""
    if not np.isfinite(value):
        raise UsageError(
            f"The attention of head {head}{more} holds NaN, infinite or negative values."
        )
    raise UsageError(
        f"The attention of head {head}{more} has rows that do not sum to 1 (off by {value:.3g}). "
        "Pass probabilities after the softmax, with padding cut away."
    )


@summing_kernel
def _deviations(attention: Floats, low: int, high: int) -> Floats:
    """For each head the largest |row sum - 1|; infinite with NaN, infinite or negative values."""
    out = np.zeros(high - low)
    for head in range(low, high):
        for t in range(attention.shape[1]):
            sum_, size = np.float32(0), np.float32(0)
            for c in range(attention.shape[2]):
                sum_ += attention[head, t, c]
                size += abs(attention[head, t, c])
            # true for a negative value, and with NaN or infinity, which compare as false
            if not (size - sum_ <= np.float32(1e-6) * sum_ and size < np.float32(np.inf)):
                out[head - low] = np.inf
            else:
                out[head - low] = max(out[head - low], abs(np.float64(sum_) - 1))
    return out
