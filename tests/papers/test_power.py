"""What would decide a claim, against simulations of the interval that it is decided by."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest

from headcount.papers.claims import Rule, Statistic, Verdict, Word, read_claims
from headcount.papers.estimates import (
    SampleSize,
    at_least,
    at_most,
    estimate,
    less_than,
    more_than,
    most_tasks,
    noted,
    rank_statistic,
    statistic,
)
from headcount.papers.power import need_of, outlooks, seconds_of_a_seed
from headcount.statistics import correlation_interval
from papers.planted import SEEDS, Planted, prune, train

RNG = np.random.default_rng(0)
REPETITIONS = 4000


def decided(rule: Rule, draw: Callable[[], tuple[float, float, float]]) -> float:
    """How often the rule decides, as it does of the value itself."""
    words = [rule(*draw()) for _ in range(REPETITIONS)]
    return sum(word != "undecided" for word in words) / REPETITIONS


def t_ends(values: np.ndarray) -> tuple[float, float, float]:
    tested = estimate("drawn", values.tolist(), at_least(0), SampleSize(of="drawn"))
    return tested.value, tested.low, tested.high


def test_so_many_seeds_decide_four_times_in_five() -> None:
    rule = at_least(0.5)
    seen = estimate("seen", {0: 0.4, 1: 0.55, 2: 0.7}, rule)
    assert seen.verdict == "undecided"
    need = need_of(seen)
    assert (need.word, need.statistic) == ("holds", seen)
    assert need.needed is not None
    rates = [
        decided(rule, lambda n=n: t_ends(RNG.normal(0.55, 0.15, n)))
        for n in (need.needed, need.needed - 10)
    ]
    assert rates[0] == pytest.approx(0.8, abs=0.03)
    assert rates[1] < rates[0] - 0.02


def test_so_many_points_decide_a_correlation_four_times_in_five() -> None:
    r, rule = 0.3, more_than(0)
    seen = statistic("r", (r, *correlation_interval(r, 30)), rule, SampleSize(30, "heads"), law="z")
    need = need_of(seen)
    assert (seen.verdict, need.word) == ("undecided", "holds")

    def draw() -> tuple[float, float, float]:
        pairs = RNG.multivariate_normal([0, 0], [[1, r], [r, 1]], need.needed)
        value = float(np.corrcoef(pairs[:, 0], pairs[:, 1])[0, 1])
        return value, *correlation_interval(value, len(pairs))

    assert decided(rule, draw) == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize("law", ["normal", "log"])
def test_so_many_units_decide_where_the_width_goes_with_their_root(law: str) -> None:
    rule, n = at_most(1.0), 40
    half = 1.959964 * 0.9 / math.sqrt(n)  # 0.9 is the spread of one
    ends = (1.2, 1.2 - half, 1.2 + half) if law == "normal" else tuple(
        1.2 * math.exp(side * half) for side in (0, -1, 1)
    )  # fmt: skip
    seen = statistic("seen", ends, rule, SampleSize(n, "models"), law=law)  # type: ignore[arg-type]
    need = need_of(seen)
    assert (seen.verdict, need.word) == ("undecided", "does not hold")
    assert need.needed is not None
    wide = 1.959964 * 0.9 / math.sqrt(need.needed)

    def draw() -> tuple[float, float, float]:
        away = RNG.normal(0, 0.9 / math.sqrt(need.needed or 1))
        if law == "normal":
            return 1.2 + away, 1.2 + away - wide, 1.2 + away + wide
        return tuple(1.2 * math.exp(away + side * wide) for side in (0, -1, 1))  # type: ignore[return-value]

    assert decided(rule, draw) == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize(("count", "pairs"), [(5, 6), (1, 6), (7, 12)])
def test_so_many_pairs_decide_a_sign_test(count: int, pairs: int) -> None:
    share = count / pairs
    ends = binomtest(count, pairs).proportion_ci()
    sizes = (share, float(ends.low), float(ends.high))
    need = need_of(statistic("s", sizes, more_than(0.5), SampleSize(pairs, "pairs"), law="share"))
    assert need.word == ("holds" if share > 0.5 else "does not hold")

    def power(n: int) -> float:  # every count that can come out, with its exact interval
        outcomes = [binomtest(k, n) for k in range(n + 1)]
        chances = [math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1)]
        clear = [o.proportion_ci().low > 0.5 or o.proportion_ci().high < 0.5 for o in outcomes]
        side = [(k > n / 2) == (share > 0.5) for k in range(n + 1)]
        return sum(p for p, c, s in zip(chances, clear, side, strict=True) if c and s)

    assert need.needed is not None
    assert power(need.needed) >= 0.8
    assert power(need.needed - 1) < 0.8


def test_no_number_decides_where_nothing_is_seen() -> None:
    assert need_of(estimate("w", {0: -0.1, 1: 0.1}, more_than(0))).needed is None
    assert need_of(estimate("w", {0: 0.1}, more_than(0))).needed is None  # one seed has no spread
    in_order = rank_statistic("w", [1, 2, 3], [1, 2, 3], more_than(0))
    assert (in_order.verdict, need_of(in_order).needed) == ("undecided", None)
    vetoed = Rule(0.0, lambda *_: "undecided")  # a second test beside the interval
    assert need_of(statistic("w", (1, -1, 3), vetoed, SampleSize(9, "heads"))).needed is None


def seen(value: float, half: float, word: Word | None = None) -> Statistic:
    ends = (value, value - half, value + half)
    made = statistic(f"{value}", ends, more_than(0), SampleSize(10, "heads"))
    return replace(made, verdict=word or made.verdict)


def test_of_several_parts_one_that_fails_settles_it_and_else_the_last_decides() -> None:
    near, far, fails, badly = seen(1, 1.1), seen(1, 9), seen(-1, 4), seen(-1, 2)
    assert need_of(noted(near, "", [near, far])).statistic == far
    assert need_of(noted(near, "", [near, far, fails, badly])).statistic == badly
    counted = Statistic(what="a count", value=3, verdict="holds")
    assert need_of(noted(near, "", [counted, near])).statistic == near
    done = seen(5, 1)
    assert done.verdict == "holds"
    assert need_of(noted(near, "", [done, near])).statistic == near


def test_most_tasks_come_down_to_the_one_that_makes_the_majority() -> None:
    near, middle, far, fails = seen(1, 1.1), seen(1, 4), seen(1, 9), seen(-1, 1.5)
    three = most_tasks("m", [near, middle, far], [True] * 3)
    assert need_of(three)[:2] == ("holds", middle)
    two = most_tasks("m", [near, fails], [True, False])
    assert need_of(two)[:2] == ("does not hold", fails)


def test_seeds_and_hours_are_of_the_groups_that_have_seeds() -> None:
    finished = Planted()
    for seed in SEEDS:
        score = {"task": "cola", "seed": seed}
        finished.add("tuned", score, train(0.9 + 0.01 * seed) | {"seconds": 60})
        for ratio in (0.5, 0.7):
            pruned = prune(0.88 - 0.02 * seed)
            finished.add("random", score | {"ratio": ratio}, pruned | {"seconds": 120})
    assert seconds_of_a_seed(finished, "pocket", ["tuned", "random"]) == 300
    (outlook,) = [
        found for found in outlooks([("pocket", finished)]) if found.verdict.claim.code == "WL4"
    ]
    assert outlook.need.word == "does not hold"
    assert outlook.need.needed is not None
    more = outlook.need.needed - 3
    assert (outlook.seeds, outlook.hours) == (more, pytest.approx(more * 300 / 3600))
    plain = outlook.to_json()
    assert (plain["code"], plain["unit"], plain["n"]) == ("WL4", "seeds", 3)
    assert "seeds (3 now)" in outlook.text


def test_heads_are_not_had_by_more_runs() -> None:
    finished = Planted()
    finished.verdicts["LO8"] = Verdict(
        claim=read_claims()["LO8"], scale="pocket", done=1, total=1,
        tested=[statistic("r", (0.1, -0.1, 0.3), less_than(0), SampleSize(144, "heads", 1))],
    )  # fmt: skip
    (outlook,) = [
        found for found in outlooks([("pocket", finished)]) if found.verdict.claim.code == "LO8"
    ]
    assert (outlook.seeds, outlook.hours) == (None, None)
    assert "another model or task" in outlook.text
