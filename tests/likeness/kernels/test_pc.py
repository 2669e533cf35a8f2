from __future__ import annotations

import numpy as np
import pytest

from headcount.likeness.kernels.pc import pc
from likeness.oracles import hard_attention


@pytest.mark.parametrize(("heads", "tokens", "keys"), [(9, 6, 6), (3, 5, 12), (3, 12, 4)])
def test_it_is_the_nuclear_norm_of_centred_matrices(heads, tokens, keys) -> None:
    attention = hard_attention(heads, tokens, keys, seed=2)
    found = pc(attention)
    centred = attention - attention.mean(1, keepdims=True, dtype=np.float64)
    for i in range(heads):
        for j in range(i):
            x, y = centred[i], centred[j]
            nuclear = np.linalg.svd(x.T @ y, compute_uv=False).sum()
            expected = 1 - nuclear / np.linalg.norm(x) / np.linalg.norm(y)
            assert found[i, j] == pytest.approx(expected, abs=3e-6)


def test_heads_that_do_not_vary() -> None:
    attention = hard_attention(3, 4, 4, seed=0)
    attention[:2] = np.float32([0.1, 0.2, 0.3, 0.4])
    attention[1] = attention[1][:, ::-1]
    assert pc(attention)[0].tolist() == [0, 0, 1]
    assert not pc(attention[:, :1]).any()  # one token: no head varies
