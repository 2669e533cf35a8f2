from __future__ import annotations

import pytest

from headcount.models import cut


@pytest.mark.parametrize("kind", ["q", "k", "kv", "qkv", "grouped"])
def test_rows_of_every_kind_by_a_loop(kind):
    heads, groups, width = 6, 3, 2
    size = heads // groups
    blocks = {
        "q": [("q", h) for h in range(heads)],
        "k": [("k", g) for g in range(groups)],
        "kv": [(c, g) for c in "kv" for g in range(groups)],
        "qkv": [("q", h) for h in range(heads)] + [(c, g) for c in "kv" for g in range(groups)],
        "grouped": [
            item
            for g in range(groups)
            for item in [("q", g * size + i) for i in range(size)] + [("k", g), ("v", g)]
        ],
    }[kind]
    for kept in ([0, 1, 4, 5], [1, 3], [0, 2, 4], []):
        wanted = {("q", h) for h in kept} | {(c, h // size) for h in kept for c in "kv"}
        expected = [
            i * width + j for i, block in enumerate(blocks) if block in wanted for j in range(width)
        ]
        assert cut.rows_of(kind, kept, heads, groups, width) == expected
