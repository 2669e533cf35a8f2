"""The end of every distance: symmetric, within [0, 1], exactly 0 for identical heads."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from headcount.likeness.kernels.compile import kernel

Floats: TypeAlias = NDArray[np.floating]

CONSTANT = 1e-6
"""Values that spread less than this part of their size are constant, but for rounding."""

_NEAR = 1e-4


@kernel
def finish(upper: Floats, attention: Floats) -> Floats:
    """The distances above the diagonal of `upper`, mirrored, clipped, as float32.

    Rounding leaves about 1e-7 between two identical heads: near pairs are compared bit by bit.
    """
    heads = upper.shape[0]
    out = np.zeros((heads, heads), np.float32)
    for i in range(heads):
        for j in range(i + 1, heads):
            value = min(max(upper[i, j], 0.0), 1.0)
            if value < _NEAR and _identical(attention[i], attention[j]):
                value = 0.0
            out[i, j] = value
            out[j, i] = value
    return out


@kernel
def _identical(a: Floats, b: Floats) -> bool:
    for t in range(a.shape[0]):
        for c in range(a.shape[1]):
            if a[t, c] != b[t, c]:
                return False
    return True
