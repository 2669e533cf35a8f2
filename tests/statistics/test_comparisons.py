from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import ttest_rel

from headcount.statistics.comparisons import compare_groups, compare_pairs, holm


def textbook(ps: list[float], alpha: float) -> set[int]:
    """Holm's procedure as it is told: go on from the smallest until one is not small enough."""
    rejected: set[int] = set()
    order = sorted(range(len(ps)), key=lambda place: ps[place])
    for step, place in enumerate(order):
        if ps[place] > alpha / (len(ps) - step):
            break
        rejected.add(place)
    return rejected


@pytest.mark.parametrize("seed", range(20))
def test_what_holm_rejects_at_any_level(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ps = (rng.random(7) ** 4).round(3).tolist()
    adjusted = holm(ps)
    for alpha in rng.random(50):
        assert {place for place, p in enumerate(adjusted) if p <= alpha} == textbook(ps, alpha)
    # and the adjusted p is the level at which it begins to be rejected
    for place, p in enumerate(adjusted):
        if p < 1:
            assert place in textbook(ps, p + 1e-12)
            assert place not in textbook(ps, p - 1e-9)


def test_what_has_no_p_is_not_counted() -> None:
    assert holm([0.02, math.nan, 0.01])[::2] == [0.02, 0.02]
    assert math.isnan(holm([math.nan])[0])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


SEEDS = range(6)
NOISE = np.random.default_rng(3).normal(0, 0.02, (4, 6))


def group(mean: float, place: int) -> dict[int, float]:
    return {seed: mean + NOISE[place, seed] for seed in SEEDS}


GROUPS = {"random": group(0.5, 0), "near": group(0.575, 1), "far": group(0.7, 2),
          "bad": group(0.3, 3), "once": {0: 0.9}}  # fmt: skip


def test_verdicts_are_those_of_the_corrected_p() -> None:
    rows = compare_groups(GROUPS, "random", higher_is_better=True)
    assert list(rows) == ["near", "far", "bad", "once"]
    ps = {
        name: ttest_rel(list(GROUPS[name].values()), list(GROUPS["random"].values())).pvalue
        for name in ("near", "far", "bad")
    }
    assert ps["near"] < 0.05 / 2  # not among the two that are certain
    assert {name: rows[name]["p"] for name in ps} == pytest.approx(ps)
    wanted = dict(zip(ps, holm(list(ps.values())), strict=True))
    assert {name: rows[name]["p_corrected"] for name in ps} == pytest.approx(wanted)
    assert {name: row["verdict"] for name, row in rows.items()} == {
        "near": "better", "far": "better", "bad": "worse", "once": "alike",
    }  # fmt: skip
    assert {row["comparisons"] for row in rows.values()} == {3}
    assert {row["seeds_needed"] for row in rows.values()} == {None}
    less = compare_groups(GROUPS, "random", higher_is_better=False)
    assert (less["far"]["verdict"], less["bad"]["verdict"]) == ("worse", "better")


def test_one_among_many_is_not_told_apart() -> None:
    """A difference that is seen alone is not seen beside enough others that are none."""
    rng = np.random.default_rng(0)
    groups = {"random": GROUPS["random"], "near": GROUPS["near"]}
    alone = compare_groups(groups, "random", higher_is_better=True)["near"]
    groups |= {f"{n}": {s: 0.5 + rng.normal(0, 0.02) for s in SEEDS} for n in range(9)}
    among = compare_groups(groups, "random", higher_is_better=True)["near"]
    assert (alone["verdict"], among["verdict"]) == ("better", "alike")
    assert among["p"] == alone["p"]
    assert among["comparisons"] == 10
    # what was not seen with these seeds takes more
    assert among["seeds_needed"] > among["seeds"]


def test_a_comparison_that_is_made_both_ways_is_one() -> None:
    both = [("near", "random"), ("random", "near"), ("far", "random")]
    rows = compare_pairs(GROUPS, both, higher_is_better=True)
    once = compare_pairs(GROUPS, both[::2], higher_is_better=True)
    assert rows["near", "random"] == once["near", "random"]
    assert rows["near", "random"]["comparisons"] == 2
    assert rows["random", "near"]["verdict"] == "worse"
    assert rows["random", "near"]["mean"] == -rows["near", "random"]["mean"]


@pytest.mark.parametrize("seed", range(30))
def test_seeds_needed_is_more_than_there_were(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 8))
    groups = {label: dict(enumerate(rng.normal(0.1 * label, 1, n))) for label in range(6)}
    rows = compare_groups(groups, 0, higher_is_better=True).values()
    assert all((row["seeds_needed"] or 0) > n for row in rows if row["verdict"] == "alike")
    assert all(row["seeds_needed"] is None for row in rows if row["verdict"] != "alike")


def test_nothing_in_common() -> None:
    rows = compare_groups({"a": {0: 1.0}, "b": {1: 1.0}}, "a", higher_is_better=True)
    assert (rows["b"]["verdict"], rows["b"]["seeds"], rows["b"]["comparisons"]) == ("alike", 0, 0)
    same = {"a": {0: 1.0, 1: 2.0}, "b": {0: 1.0, 1: 2.0}}
    row = compare_groups(same, "a", higher_is_better=True)["b"]
    assert (row["verdict"], row["p_corrected"], row["seeds_needed"]) == ("alike", 1.0, None)
