"""Values by task and seed, and the verdicts on them."""

from __future__ import annotations

import math

import pytest

from headcount.papers import seeds
from headcount.papers.seeds import (
    at_least,
    at_most,
    by_task,
    heads_left,
    left_out,
    less_than,
    mean_of,
    measured,
    minus,
    more_than,
    no_difference,
    no_ratio,
    of_all,
    ratio_of,
    relative_to,
    rows_behind,
    unexcluded,
)
from papers.planted import Planted, prune


def test_scores_by_task_and_seed() -> None:
    found = Planted()
    for task, seed, score in (("cola", 0, 0.5), ("cola", 1, 0.6), ("mrpc", 0, None)):
        found.add("random", {"task": task, "seed": seed}, prune(score))
    # a constant prediction has no correlation: it is worth nothing, and is not left out
    assert by_task(found.runs("random")) == {"cola": {0: 0.5, 1: 0.6}, "mrpc": {0: 0.0}}
    raw = by_task(found.runs("random"), lambda each: each.score)
    assert raw == {"cola": {0: 0.5, 1: 0.6}}
    assert rows_behind(found.runs("random")) == {"n": 1000, "of": "rows scored of 2 tasks"}
    assert rows_behind(found.runs("random", task="mrpc")) == {"n": 500, "of": "rows scored"}


def test_shares_and_differences_where_both_are_there() -> None:
    own = {"cola": {0: 0.4, 1: 0.3}, "rte": {0: 0.2}, "wnli": {0: 0.1}}
    whole = {"cola": {0: 0.8}, "wnli": {0: -0.1}}
    assert relative_to(own, whole) == {"cola": {0: 0.5}}
    assert minus(own, whole) == {"cola": {0: -0.4}, "wnli": {0: pytest.approx(0.2)}}
    said = "Left out, as the whole model scores 0 or less: wnli."
    assert (left_out(("cola", "wnli"), ("cola",)), left_out(("cola",), ("cola",))) == (said, "")


def test_means_are_over_seeds_that_all_have() -> None:
    assert mean_of([{0: 1.0, 1: 2.0}, {1: 4.0, 2: 5.0}]) == {1: 3.0}
    assert mean_of([]) == {}


def test_an_interval_is_over_seeds() -> None:
    found = measured("x", {0: 1.0, 1: 2.0, 2: 3.0}, more_than(0))
    wide = 4.302652729911275 / math.sqrt(3)  # Student's t with two degrees of freedom
    assert (found.low, found.high) == pytest.approx((2 - wide, 2 + wide))
    assert (found.seeds, found.n, found.of, found.verdict) == (3, 3, "seeds", "undecided")
    assert measured("x", {0: 1.0}, more_than(0)).verdict == "undecided"
    assert measured("x", {}, more_than(0)).verdict == "not run"
    listed = measured("x", [1.0, 1.0], more_than(0), seeds=7, n=9, of="pairs")
    assert (listed.seeds, listed.n, listed.of, listed.verdict) == (7, 9, "pairs", "holds")


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (at_least(0), ["holds", "does not hold", "undecided", "holds", "undecided"]),
        (more_than(0), ["holds", "does not hold", "undecided", "does not hold", "undecided"]),
        (at_most(0), ["does not hold", "holds", "undecided", "holds", "undecided"]),
        (less_than(0), ["does not hold", "holds", "undecided", "does not hold", "undecided"]),
        (no_difference, ["does not hold", "does not hold", "holds", "holds", "undecided"]),
    ],
)
def test_rules(rule: seeds.Rule, words: list[str]) -> None:
    spans = [(1.0, 3.0), (-3.0, -1.0), (-1.0, 2.0), (0.0, 0.0), (math.nan, math.nan)]
    assert [rule((low + high) / 2, low, high) for low, high in spans] == words


def test_a_part_that_does_not_hold_settles_the_whole() -> None:
    assert of_all(["holds", "not run", "does not hold"]) == "does not hold"
    assert of_all(["holds", "not run", "undecided"]) == "not run"
    assert of_all(["holds", "undecided"]) == "undecided"
    assert of_all(["holds", "holds"]) == "holds"


def test_what_is_not_excluded_is_said_where_0_is_included() -> None:
    wide = measured("x", [-1.0, 1.0], no_difference, note="First.")
    assert unexcluded(wide).note == "First. A difference of up to 12.7 either way is not excluded."
    sure = measured("x", [1.0, 1.1], no_difference)
    assert unexcluded(sure) is not wide
    assert unexcluded(measured("x", [1.0, 1.001], no_difference)).note == ""
    assert unexcluded(measured("x", [1.0], no_difference)).note == ""


def test_a_ratio_is_an_axis_or_in_the_record() -> None:
    found = Planted()
    found.add("a", {"ratio": 0.25}, prune(0.5))
    found.add("a", {}, prune(0.5) | {"ratio": 0.5})
    found.add("a", {"ratio": "free"}, prune(0.5))
    runs = found.runs("a")
    assert [ratio_of(each) for each in runs][:2] == [0.25, 0.5]
    assert math.isnan(ratio_of(runs[2]))
    said = no_ratio("x", 0.875, runs)
    assert said.note == "No run removes 87.5 % of the heads; tried: 25 %, 50 %."


def test_heads_left_by_layer() -> None:
    found = Planted()
    found.add("a", {}, prune(0.5, kept={"encoder": [8, 0], "decoder": [3]}))
    assert heads_left(found.runs("a")[0]) == {"encoder": [(8, 8), (0, 8)], "decoder": [(3, 8)]}
