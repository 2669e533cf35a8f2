"""Most of several tasks, relative scores, and areas under curves."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from headcount.changes.correlation import correlate
from headcount.papers import claims
from headcount.papers.claims import Word
from headcount.papers.claims_tools import (
    area,
    areas,
    curves,
    first_there,
    last_of,
    noted,
    on_most,
    ranks_go_together,
    relative,
)
from headcount.papers.seeds import more_than
from papers.made import Made, cut


def test_what_is_noted_joins_what_was() -> None:
    own = claims.TestedStatistic(what="x", value=1.0, verdict="holds", note="a")
    assert noted(own, "b", "does not hold") == claims.TestedStatistic(
        what="x", value=1.0, verdict="does not hold", note="a; b"
    )
    assert noted(own, "").note == "a"
    assert noted(own, "b").verdict == "holds"


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
    tasks = [claims.TestedStatistic(what="x", value=1.0, verdict=word, seeds=3) for word in words]
    found = on_most("most", tasks, [word != "does not hold" for word in words])
    assert (found.verdict, (found.low, found.high)) == (verdict, ends)
    assert (found.seeds, found.n, found.of) == (3, len(words), "tasks")


def test_relative_scores_turn_with_the_metric(tmp_path: Path) -> None:
    made = Made(tmp_path, "words")
    made.fill("words", lambda _: cut(4.0, 2.0, metric="perplexity"))
    assert {relative(each) for each in made.found.runs("words")} == {0.5}
    made.fill("words", lambda _: cut(0.6, 0.8, metric="recall@1"))
    assert relative(made.found.runs("words")[0]) == pytest.approx(0.75)
    made.fill("words", lambda _: cut(math.nan, 0.8) | {"scores": {
        "before": {"metric": "spearman", "score": 0.8, "n": 5},
        "after": {"metric": "spearman", "score": None, "n": 5}}})  # fmt: skip
    assert relative(made.found.runs("words")[0]) == 0.0


def test_curves_start_with_all_heads_and_go_by_heads_that_went(tmp_path: Path) -> None:
    made = Made(tmp_path, "words")
    made.fill("words", lambda cell: cut(0.4, gone=round(48 * cell.axes["ratio"])))
    found = curves(made.found, "words")
    assert list(found) == ["pocket-corpus"]
    assert sorted(found["pocket-corpus"]) == [0, 1, 2]
    curve = found["pocket-corpus"][0]
    assert curve[0] == (0.0, 1.0)
    assert curve[-1] == pytest.approx((43 / 48, 0.5))
    assert last_of(found) == pytest.approx(43 / 48)


def test_an_area_is_a_mean_height_up_to_a_share() -> None:
    falling = [(0.0, 1.0), (0.4, 0.8), (0.8, 0.0)]
    plain = (0.4 * 0.9 + 0.2 * (0.8 + 0.4) / 2) / 0.6
    assert area(falling, 0.6) == pytest.approx(plain)
    assert area(falling, 0.8) == pytest.approx((0.4 * 0.9 + 0.4 * 0.4) / 0.8)
    assert areas({"a": {0: falling}}, 0.8) == {"a": {0: pytest.approx(0.52 / 0.8)}}


def test_a_score_of_nothing_has_no_share(tmp_path: Path) -> None:
    made = Made(tmp_path, "words")
    made.fill("words", lambda cell: cut(0.4, -0.1 if cell.run.seed else 0.8))
    assert list(curves(made.found, "words")["pocket-corpus"]) == [0]
    made.fill("words", lambda _: cut(0.4, 0.0))
    assert curves(made.found, "words") == {}


def test_the_first_group_that_the_scale_has_is_meant(tmp_path: Path) -> None:
    found = Made(tmp_path, "tuned", "frozen").found
    assert first_there(found, "frozen-full", "tuned") == "tuned"
    assert first_there(found, "frozen", "tuned") == "frozen"
    assert first_there(found, "frozen-full", "words") == "words"


def test_few_points_in_order_may_be_so_by_chance() -> None:
    four = ranks_go_together("x", [0, 1, 2, 3], [1, 2, 3, 4], more_than(0.0), note="a")
    assert (four.low, four.high, four.verdict) == (1.0, 1.0, "undecided")  # 2 of 24 orders
    assert four.note == "p 0.083; a"
    five = ranks_go_together("x", range(5), range(5), more_than(0.0), n=5, of="points")
    assert (five.verdict, five.n, five.of) == ("holds", 5, "points")
    down = ranks_go_together("x", range(6), [6, 5, 3, 4, 2, 1], more_than(0.0))
    plain = correlate(range(6), [6, 5, 3, 4, 2, 1])
    assert (down.low, down.high) == pytest.approx((plain.spearman_low, plain.spearman_high))
    assert down.verdict == "does not hold"
