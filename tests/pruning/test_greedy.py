from __future__ import annotations

from headcount.heads import Head, Layout, Mask, Scores
from headcount.pruning.greedy import GreedyPath


def test_scores_are_measured_once_for_each_size_and_shared_by_all_counts():
    heads, seen = Layout.of(encoder=[3, 3]), []

    def measure(mask: Mask) -> Scores:
        seen.append(len(mask))
        return Scores(heads, tuple(float(n) for n in range(6)))

    path = GreedyPath(heads, measure, 2)
    assert path.keep(1).mask == Mask.full(heads).drop(
        [h for h in heads if h != Head("encoder", 1, 2)]
    )
    assert len(path.keep(5).mask) == 5
    assert seen == [6, 4, 2]


def test_a_head_that_is_gone_does_not_come_back():
    heads = Layout.of(encoder=[4])

    def turned(mask: Mask) -> Scores:
        """What was smallest before is largest afterwards."""
        values = (0.0, 1.0, 2.0, 3.0) if len(mask) == 4 else (9.0, 3.0, 2.0, 1.0)
        return Scores(heads, values)

    path = GreedyPath(heads, turned, 0)
    assert [h.index for h in path.keep(3).mask] == [1, 2, 3]
    assert [h.index for h in path.keep(2).mask] == [1, 2]
