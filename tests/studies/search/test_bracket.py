from __future__ import annotations

import itertools

import pytest

from headcount.base.errors import UsageError
from headcount.heads import Layout, Scores, Stack
from headcount.heads.choose import keep_best
from headcount.studies.search.bracket import fewest, head_counts, layer_counts


@pytest.mark.parametrize("need", [0, 1, 20, 41, 71])
def test_the_boundary_of_a_steady_score_is_exact_and_cheap(need: int) -> None:
    asked: list[int] = []

    def accepts(kept: int) -> bool:
        asked.append(kept)
        return kept >= need

    assert fewest(range(72), accepts) == need
    assert len(set(asked)) <= 7 + 3  # bisection of 72, and a few larger cuts


def test_no_cut_is_enough() -> None:
    assert fewest(range(72), lambda kept: False) is None
    assert fewest([], lambda kept: True) is None


def test_a_larger_cut_beyond_the_boundary_is_found() -> None:
    good = {37, 38} | set(range(41, 72))
    assert fewest(range(72), lambda kept: kept in good) == 37


def test_only_counts_that_are_there_are_asked() -> None:
    counts = [0, 3, 6, 7, 11]
    asked: set[int] = set()
    assert fewest(counts, lambda kept: bool(asked.add(kept)) or kept >= 6) == 6
    assert asked <= set(counts)


@pytest.mark.parametrize("leave", [0, 1])
def test_counts_of_grouped_heads_are_those_that_can_be_chosen(leave: int) -> None:
    layout = Layout((Stack("decoder", (6, 4), (3, 2), (1, 1)),))
    scores = Scores(layout, tuple(range(10)))
    possible = []
    for count in range(10):
        try:
            keep_best(scores, count, leave=leave)
        except UsageError:
            continue
        possible.append(count)
    assert head_counts(layout, leave) == possible


def test_counts_of_a_layer_by_brute_force() -> None:
    for groups, size in itertools.product(range(1, 4), range(1, 4)):
        ways = {many * inside for many in range(groups + 1) for inside in range(size + 1)}
        assert layer_counts(groups * size, groups) == sorted(ways)
    assert layer_counts(0, 0) == [0]
