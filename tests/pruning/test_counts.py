from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.base.errors import UsageError
from headcount.heads import Layout
from headcount.pruning.counts import kept_in, parts_of, share_out


@given(st.lists(st.integers(0, 40), min_size=1, max_size=9), st.floats(0, 1))
def test_shares_add_up_and_stay_within_a_head_of_the_exact_share(sizes, share):
    total = round(sum(sizes) * share)
    counts = share_out(sizes, total)
    assert sum(counts) == total
    for size, count in zip(sizes, counts, strict=True):
        assert 0 <= count <= size
        assert abs(count - size * total / max(1, sum(sizes))) < 1


def test_equal_remainders_go_in_the_order_given():
    assert share_out([4, 4, 4], 7) == [3, 2, 2]
    assert share_out([4, 4, 4], 7, order=[2, 0, 1]) == [2, 2, 3]


def test_the_rule_of_a_part_is_the_rule_of_the_model():
    layout = Layout.of(encoder=[8] * 3, decoder=[8] * 3)
    (part,) = parts_of(layout, "model", "decoder")
    assert [kept_in(layout, part, p) for p in (0, 0.3, 0.5, 0.9, 1)] == [24, 17, 12, 3, 0]


def test_parts():
    layout = Layout.of(encoder=[8], decoder=[8, 8])
    assert [len(part) for part in parts_of(layout, "layer")] == [1, 1, 1]
    with pytest.raises(UsageError, match="Did you mean 'layer'"):
        parts_of(layout, "layers")
    with pytest.raises(UsageError, match="no cross heads"):
        parts_of(layout, "model", "cross")
