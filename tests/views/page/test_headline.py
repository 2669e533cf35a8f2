"""The first sentence: a search's, else of the smallest model without a measurable loss."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headcount.views.page.headline import RandomScores, headline, signed
from headcount.views.page.pruned import PrunedVariant, pruned_models
from headcount.views.page.reading import Interval
from headcount.views.page.rows import UsedRows
from headcount.views.page.subjects import PageSubject
from headcount.views.page.walk import ReportInput


def test_a_search_has_its_sentence(subject: PageSubject, report: ReportInput) -> None:
    models = pruned_models(subject, report)
    top = headline(subject, report, models)
    assert top.sentence == "6 of the 12 heads of model can go."
    assert top.selected is not None
    assert models[top.selected].id == "final"
    assert (top.bound, top.max_loss, top.within_bound) == ("2 %", pytest.approx(0.018), True)
    assert top.note.startswith("Selected on half of dev (selection set, 500 rows); the estimate")
    assert [size.accepted for size in top.tried] == [False, True]
    (search,) = report.of("search")
    for size in search.data["sizes"]:  # within a budget
        size["accepted"] = None
    assert [size.accepted for size in headline(subject, report, models).tried] == [None, None]


def test_a_search_that_selected_nothing_is_not_left_out(
    subject: PageSubject, report: ReportInput
) -> None:
    """No held-out rows: the page was made without the search."""
    data = subject.of("search")[0].data
    data["rows"] = {**data["rows"], "held_out": None}
    assert (
        headline(subject, report, []).note == "Selected on half of dev (selection set, 500 rows)."
    )
    assert report.skipped == []


@pytest.mark.parametrize(
    ("bound", "by", "read"),
    [("1 %", "loss", 0.009), ("0.01", "loss", 0.01), (-0.02, "loss", 0.02), (None, "knee", None),
     ("0.8x", "budget", None)],
)  # fmt: skip
def test_a_bound_is_read_in_the_scores_unit(
    subject: PageSubject, report: ReportInput, bound: object, by: str, read: float | None
) -> None:
    subject.of("search")[0].data.update(bound=bound, by=by)
    max_loss = headline(subject, report, []).max_loss
    assert max_loss == (None if read is None else pytest.approx(read))


def without_search(subject: PageSubject) -> PageSubject:
    subject.items = [item for item in subject.items if item.kind != "search"]
    return subject


def made(kept: int, loss: tuple[float, float, float], seed: int = 0, **more: Any) -> PrunedVariant:
    known = {"method": "m", "metric": "accuracy", "study": "s", "mask": "", "pattern": ""} | more
    score, rows = Interval(0.9 + loss[0]), UsedRows.of("dev", 100)
    return PrunedVariant(
        kept=kept, seed=seed, score=score, difference=Interval(*loss), rows=rows, **known
    )


def test_the_smallest_model_without_a_loss_for_every_seed(
    subject: PageSubject, report: ReportInput
) -> None:
    models = [
        made(9, (0.0, -0.01, 0.01)),
        made(6, (0.0, -0.01, 0.01)), made(6, (-0.05, -0.06, -0.04), seed=1),
        made(3, (-0.2, -0.3, -0.1)),
    ]  # fmt: skip
    top = headline(without_search(subject), report, models)
    assert top.selected == 0
    assert top.sentence == (
        "3 of 12 heads can go, as far as these rows show: with m, accuracy is 0.900 instead of "
        "0.900, a difference of +0.000 [−0.010, +0.010] on 100 rows."
    )
    assert "after its score was seen" in top.note


def test_of_equal_models_the_better_one(subject: PageSubject, report: ReportInput) -> None:
    models = [made(6, (-0.01, -0.02, 0.01)), made(6, (0.0, -0.01, 0.01), method="n")]
    assert headline(without_search(subject), report, models).selected == 1


@pytest.mark.parametrize(("metric", "lossless"), [("accuracy", False), ("perplexity", True)])
def test_less_is_better_for_some_metrics(
    subject: PageSubject, report: ReportInput, metric: str, lossless: bool
) -> None:
    models = [made(6, (-0.2, -0.3, -0.1), metric=metric)]
    top = headline(without_search(subject), report, models)
    assert (top.selected == 0) is lossless


def test_nothing_was_scored(subject: PageSubject, report: ReportInput) -> None:
    top = headline(without_search(subject), report, [])
    assert top.sentence == "model has 12 heads; no pruned model has been scored on task yet."
    assert top.command == "headcount search model --task task --max-drop 1% --out search"


def test_the_next_command_names_the_rows(subject: PageSubject, report: ReportInput) -> None:
    source = {"data": "my rows", "columns": ["a", "b"], "label": "y", "hub": None}
    for item in without_search(subject).items:
        if isinstance(item.data, dict) and "run" in item.data:
            item.data["run"]["source"] = source
    assert headline(subject, report, []).command == (
        "headcount search model --task task --data 'my rows' --columns a b --label y "
        "--max-drop 1% --out search"
    )


def test_a_command_that_was_not_kept_is_not_made_up(
    subject: PageSubject, report: ReportInput
) -> None:
    assert headline(subject, report, []).command == "headcount search model --data rows"
    del subject.of("search")[0].data["command"]
    assert headline(subject, report, []).command is None


def test_every_model_loses(subject: PageSubject, report: ReportInput) -> None:
    top = headline(without_search(subject), report, [made(6, (-0.2, -0.3, -0.1))])
    assert top.sentence == "No pruned model that was tried keeps the score of all 12 heads."


def test_a_score_that_is_not_there_is_not_stated(subject: PageSubject, report: ReportInput) -> None:
    models = [replace(made(6, (0.0, -0.01, 0.01)), score=Interval(None))]
    top = headline(without_search(subject), report, models)
    assert top.sentence == "No pruned model that was tried keeps the score of all 12 heads."
    models = [made(6, (0.0, -0.01, 0.01), full=Interval(None))]
    assert "is 0.900 instead of 0.900" in headline(subject, report, models).sentence


def test_signs_are_typographic() -> None:
    assert signed(-0.1) == "−0.100"


def test_random_heads_and_one_row_a_number_of_heads(
    subject: PageSubject, report: ReportInput
) -> None:
    data = subject.of("search")[0].data
    assert headline(subject, report, []).random is None
    random = {"draws": 3, "mean": 0.811, "worst": 0.79, "best": 0.82, "scores": [1.0]}
    pooled = data["sizes"][0] | {"seeds": [0, 1], "probability": 0.86, "accepted": True}
    data.update(random=random, sizes=[pooled], seed=1)
    top = headline(subject, report, [])
    assert top.random == RandomScores(mean=0.811, worst=0.79, best=0.82, count=3)
    (size,) = top.tried
    assert (size.seeds, size.probability) == ([0, 1], 0.86)
