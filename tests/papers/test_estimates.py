"""Values by task and seed, and the verdicts on them."""

from __future__ import annotations

import math

import pytest

from headcount.changes.correlation import correlate
from headcount.papers import estimates
from headcount.papers.claims import Statistic, Word
from headcount.papers.estimates import (
    SampleSize,
    at_least,
    at_most,
    by_task,
    estimate,
    left_out,
    less_than,
    mean_of,
    minus,
    more_than,
    most_tasks,
    no_difference,
    no_ratio,
    noted,
    of_all,
    rank_statistic,
    relative_to,
    rows_scored,
    unexcluded,
)
from papers.planted import Planted, prune


def test_scores_by_task_and_seed() -> None:
    finished = Planted()
    for task, seed, score in (("cola", 0, 0.5), ("cola", 1, 0.6), ("mrpc", 0, None)):
        finished.add("random", {"task": task, "seed": seed}, prune(score))
    # a constant prediction has no correlation: it is worth nothing, and is not left out
    assert by_task(finished.runs("random")) == {"cola": {0: 0.5, 1: 0.6}, "mrpc": {0: 0.0}}
    raw = by_task(finished.runs("random"), lambda run: run.score)
    assert raw == {"cola": {0: 0.5, 1: 0.6}}
    assert rows_scored(finished.runs("random")) == (1000, "rows scored of 2 tasks", None)
    assert rows_scored(finished.runs("random", task="mrpc")) == (500, "rows scored", None)


def test_shares_and_differences_where_both_are_there() -> None:
    scores = {"cola": {0: 0.4, 1: 0.3}, "rte": {0: 0.2}, "wnli": {0: 0.1}}
    whole = {"cola": {0: 0.8}, "wnli": {0: -0.1}}
    assert relative_to(scores, whole) == {"cola": {0: 0.5}}
    assert minus(scores, whole) == {"cola": {0: -0.4}, "wnli": {0: pytest.approx(0.2)}}
    note = "Left out, as the whole model scores 0 or less: wnli."
    assert (left_out(("cola", "wnli"), ("cola",)), left_out(("cola",), ("cola",))) == (note, "")


def test_means_are_over_seeds_that_all_have() -> None:
    assert mean_of([{0: 1.0, 1: 2.0}, {1: 4.0, 2: 5.0}]) == {1: 3.0}
    assert mean_of([]) == {}


def test_an_interval_is_over_seeds() -> None:
    mean = estimate("x", {0: 1.0, 1: 2.0, 2: 3.0}, more_than(0))
    wide = 4.302652729911275 / math.sqrt(3)  # Student's t with two degrees of freedom
    assert (mean.low, mean.high) == pytest.approx((2 - wide, 2 + wide))
    assert (mean.seeds, mean.n, mean.of, mean.verdict) == (3, 3, "seeds", "undecided")
    assert estimate("x", {0: 1.0}, more_than(0)).verdict == "undecided"
    assert estimate("x", {}, more_than(0)).verdict == "not run"
    listed = estimate("x", [1.0, 1.0], more_than(0), SampleSize(9, "pairs", 7))
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
def test_rules(rule: estimates.Rule, words: list[str]) -> None:
    spans = [(1.0, 3.0), (-3.0, -1.0), (-1.0, 2.0), (0.0, 0.0), (math.nan, math.nan)]
    assert [rule((low + high) / 2, low, high) for low, high in spans] == words


def test_a_part_that_does_not_hold_settles_the_whole() -> None:
    assert of_all(["holds", "not run", "does not hold"]) == "does not hold"
    assert of_all(["holds", "not run", "undecided"]) == "not run"
    assert of_all(["holds", "undecided"]) == "undecided"
    assert of_all(["holds", "holds"]) == "holds"


def test_what_is_not_excluded_is_said_where_0_is_included() -> None:
    wide = estimate("x", [-1.0, 1.0], no_difference, note="First.")
    assert unexcluded(wide).note == "First. A difference of up to 12.7 either way is not excluded."
    sure = estimate("x", [1.0, 1.1], no_difference)
    assert unexcluded(sure) is not wide
    assert unexcluded(estimate("x", [1.0, 1.001], no_difference)).note == ""
    assert unexcluded(estimate("x", [1.0], no_difference)).note == ""


def test_a_ratio_is_an_axis_or_in_the_record() -> None:
    finished = Planted()
    finished.add("a", {"ratio": 0.25}, prune(0.5))
    finished.add("a", {}, prune(0.5) | {"ratio": 0.5})
    finished.add("a", {"ratio": "free"}, prune(0.5))
    runs = finished.runs("a")
    assert [run.ratio for run in runs][:2] == [0.25, 0.5]
    assert math.isnan(runs[2].ratio)
    tested = no_ratio("x", 0.875, runs)
    assert tested.note == "No run removes 87.5 % of the heads; tried: 25 %, 50 %."


def test_what_is_noted_joins_what_was() -> None:
    tested = Statistic(what="x", value=1.0, verdict="holds", note="a")
    part = Statistic(what="y", value=2.0, verdict="does not hold")
    assert noted(tested, "b", [tested, part]) == Statistic(
        what="x", value=1.0, verdict="does not hold", note="a; b", parts=(tested, part)
    )
    assert noted(tested, "").note == "a"
    assert noted(tested, "b").verdict == "holds"


@pytest.mark.parametrize(
    ("words", "verdict", "ends"),
    [
        (["holds", "holds", "does not hold"], "holds", (2 / 3, 2 / 3)),
        (["holds", "does not hold"], "does not hold", (0.5, 0.5)),  # half are not most
        (["holds", "undecided"], "undecided", (0.5, 1.0)),
        (["undecided", "does not hold", "does not hold"], "does not hold", (0.0, 1 / 3)),
    ],
)
def test_most_of_the_tasks_is_more_than_half_of_them(
    words: list[Word], verdict: Word, ends: tuple[float, float]
) -> None:
    tasks = [Statistic(what="x", value=1.0, verdict=word, seeds=3) for word in words]
    share = most_tasks("most", tasks, [word != "does not hold" for word in words])
    assert (share.verdict, (share.low, share.high)) == (verdict, ends)
    assert (share.seeds, share.n, share.of) == (3, len(words), "tasks")


def test_few_points_in_order_may_be_so_by_chance() -> None:
    four = rank_statistic("x", [0, 1, 2, 3], [1, 2, 3, 4], more_than(0.0), note="a")
    assert (four.low, four.high, four.verdict) == (1.0, 1.0, "undecided")  # 2 of 24 orders
    assert four.note == "p 0.083; a"
    five = rank_statistic("x", range(5), range(5), more_than(0.0), SampleSize(5, "points"))
    assert (five.verdict, five.n, five.of) == ("holds", 5, "points")
    down = rank_statistic("x", range(6), [6, 5, 3, 4, 2, 1], more_than(0.0))
    plain = correlate(range(6), [6, 5, 3, 4, 2, 1])
    assert (down.low, down.high) == pytest.approx((plain.spearman_low, plain.spearman_high))
    assert down.verdict == "does not hold"
