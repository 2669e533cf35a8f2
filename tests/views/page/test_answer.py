"""The answer: a search's sentence, else the smallest cut that no seed tells from all heads."""

from __future__ import annotations

from typing import Any

import pytest

from headcount.views.page.answer import answer, signed
from headcount.views.page.cuts import cuts, full_of
from headcount.views.page.subjects import PageSubject
from headcount.views.page.walk import ReportInput


def test_a_search_answers_itself(subject: PageSubject, found: ReportInput) -> None:
    made = cuts(subject, found)
    said = answer(subject, found, made, full_of(subject))
    assert said["sentence"] == "6 of the 12 heads of model can go."
    assert made[said["cut"]]["id"] == "final"
    assert (said["bound"], said["holds"], said["from"]) == (pytest.approx(0.018), True, "search")
    assert said["note"].startswith("Chosen on half of dev (selection set, 500 rows); the ")
    assert [each["accepted"] for each in said["tried"]] == [False, True]


def test_a_search_without_an_answer_is_not_left_out(
    subject: PageSubject, found: ReportInput
) -> None:
    """No rows of a statement: the page was made without the search."""
    data = subject.of("search")[0].data
    data["rows"] = {**data["rows"], "scored": None}
    said = answer(subject, found, [], None)
    assert (said["from"], said["note"]) == (
        "search", "Chosen on half of dev (selection set, 500 rows).",
    )  # fmt: skip
    assert found.skipped == []


@pytest.mark.parametrize(
    ("bound", "by", "read"),
    [("1 %", "loss", 0.009), ("0.01", "loss", 0.01), (-0.02, "loss", 0.02), (None, "knee", None),
     ("0.8x", "budget", None)],
)  # fmt: skip
def test_a_bound_is_read_in_the_scores_unit(
    subject: PageSubject, found: ReportInput, bound: object, by: str, read: float | None
) -> None:
    subject.of("search")[0].data.update(bound=bound, by=by)
    said = answer(subject, found, [], None)
    assert said["bound"] == (None if read is None else pytest.approx(read))


def without_search(subject: PageSubject) -> PageSubject:
    subject.items = [item for item in subject.items if item.kind != "search"]
    return subject


def made_cut(
    kept: int, lost: tuple[float, float, float], seed: int = 0, **more: Any
) -> dict[str, Any]:
    names = ("value", "low", "high")
    return {"kept": kept, "study": "s", "method": "m", "seed": seed, "metric": "accuracy", "n": 100,
            "score": {"value": 0.9 + lost[0]}, "difference": dict(zip(names, lost, strict=True)),
            **more}  # fmt: skip


def test_the_smallest_cut_that_holds_for_every_seed(
    subject: PageSubject, found: ReportInput
) -> None:
    made = [
        made_cut(9, (0.0, -0.01, 0.01)),
        made_cut(6, (0.0, -0.01, 0.01)), made_cut(6, (-0.05, -0.06, -0.04), seed=1),
        made_cut(3, (-0.2, -0.3, -0.1)),
    ]  # fmt: skip
    said = answer(without_search(subject), found, made, {"value": 0.9})
    assert said["cut"] == 0
    assert said["sentence"] == (
        "3 of 12 heads can go, as far as these rows tell: by m, accuracy is 0.900 instead of "
        "0.900, a difference of +0.000 [−0.010, +0.010] on 100 rows."
    )
    assert "after its score was seen" in said["note"]


def test_a_cut_whose_score_is_damaged_is_not_the_answer(
    subject: PageSubject, found: ReportInput
) -> None:
    whole = made_cut(9, (0.0, -0.01, 0.01))
    for score in (None, {"value": None, "low": 0.1, "high": 0.2}):
        made = [made_cut(6, (0.0, -0.01, 0.01), score=score), whole]
        assert answer(without_search(subject), found, made, None)["cut"] == 1


def test_of_equal_cuts_the_better_one(subject: PageSubject, found: ReportInput) -> None:
    made = [made_cut(6, (-0.01, -0.02, 0.01)), made_cut(6, (0.0, -0.01, 0.01), method="n")]
    assert answer(without_search(subject), found, made, None)["cut"] == 1


@pytest.mark.parametrize(("metric", "holds"), [("accuracy", False), ("perplexity", True)])
def test_less_is_better_for_some_metrics(
    subject: PageSubject, found: ReportInput, metric: str, holds: bool
) -> None:
    made = [made_cut(6, (-0.2, -0.3, -0.1), metric=metric)]
    said = answer(without_search(subject), found, made, None)
    assert (said["cut"] == 0) is holds


def test_nothing_was_scored(subject: PageSubject, found: ReportInput) -> None:
    said = answer(without_search(subject), found, [], None)
    assert said["sentence"] == "model has 12 heads; no cut of them has been scored on task yet."
    assert said["command"] == "headcount search model --task task --max-drop 1% --out search"


def test_what_to_ask_next_names_the_rows(subject: PageSubject, found: ReportInput) -> None:
    source = {"data": "my rows", "columns": ["a", "b"], "label": "y", "hub": None}
    for item in without_search(subject).items:
        if isinstance(item.data, dict) and "run" in item.data:
            item.data["run"]["source"] = source
    said = answer(subject, found, [], None)
    assert said["command"] == (
        "headcount search model --task task --data 'my rows' --columns a b --label y "
        "--max-drop 1% --out search"
    )


def test_a_command_that_was_not_kept_is_not_made_up(
    subject: PageSubject, found: ReportInput
) -> None:
    assert answer(subject, found, [], None)["command"] == "headcount search model --data rows"
    del subject.of("search")[0].data["command"]
    assert answer(subject, found, [], None)["command"] is None


def test_no_cut_holds(subject: PageSubject, found: ReportInput) -> None:
    said = answer(without_search(subject), found, [made_cut(6, (-0.2, -0.3, -0.1))], None)
    assert said["sentence"] == "No cut that was tried keeps the score of all 12 heads."


def test_signs_are_typographic() -> None:
    assert signed(-0.1) == "−0.100"


def test_random_heads_and_one_row_a_number_of_heads(
    subject: PageSubject, found: ReportInput
) -> None:
    data = subject.of("search")[0].data
    said = answer(subject, found, [], None)
    assert said["random"] is None
    assert [each["seeds"] for each in said["tried"]] == [[0], [0]]  # as older searches have it
    random = {"draws": 3, "mean": 0.811, "worst": 0.79, "best": 0.82, "scores": [1.0]}
    pooled = data["tried"][0] | {"seeds": [0, 1], "chance": 0.86, "accepted": True}
    data.update(random=random, sizes=[pooled], seed=1)
    said = answer(subject, found, [], None)
    assert said["random"] == {"draws": 3, "mean": 0.811, "worst": 0.79, "best": 0.82}
    assert (said["seed"], len(said["tried"])) == (1, 1)
    assert (said["tried"][0]["seeds"], said["tried"][0]["chance"]) == ([0, 1], 0.86)
