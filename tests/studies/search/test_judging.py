"""Where rows and seeds are spent, on cuts whose answers are made up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from headcount.studies.search.bounds import MaxDrop
from headcount.studies.search.judging import Judge, rows_line
from headcount.studies.search.options import SearchOptions
from headcount.tasks.metrics import Outcome, Score
from headcount.training.scoring import Scoring

ROWS = 1000
LABELS = np.zeros(ROWS, dtype=int)


class Planted:
    """Trials in which a cut is wrong about a planted share of its rows."""

    def __init__(self, wrong: dict[int, float], by_seed: dict[int, float] | None = None) -> None:
        self.wrong, self.by_seed = wrong, by_seed or {}
        self.stages = [100, 200, 400, 800, ROWS]
        self.scoring = Scoring(bootstrap=300)
        self.asked: list[tuple[int, int, int]] = []

    def _said(self, share: float, seed: int, rows: int) -> Any:
        said = LABELS.copy()
        # evenly spread, so that every first part has its share
        said[(np.arange(ROWS) * 0.6180339887 % 1) < share] = 1
        scores = (Score(metric="accuracy", value=float((said == 0).mean()), low=0, high=1),)
        outcome = Outcome(said[:rows], LABELS[:rows])
        return SimpleNamespace(outcome=outcome, scores=scores, score=scores[0].value)

    def before(self, wanted: Any, rows: int) -> Any:
        return self._said(0.0, 0, rows)

    def after(self, wanted: Any, rows: int) -> Any:
        self.asked.append((wanted.kept, wanted.seed, rows))
        share = self.wrong[wanted.kept] + self.by_seed.get(wanted.seed, 0.0)
        return self._said(share, wanted.seed, rows)

    def run(self, wanted: Any, rows: int) -> Any:
        return SimpleNamespace(key=f"{wanted.kept}-{wanted.seed}-{rows}")


def cut(kept: int, seed: int) -> Any:
    return SimpleNamespace(label="planted", kept=kept, seed=seed)


def judge(trials: Planted, drop: float = 0.05, **options: Any) -> Judge:
    made: Any = trials
    return Judge(
        trials=made,
        bound=MaxDrop(drop, False),
        search_options=SearchOptions(**options),
        seed=4,
        sign=1.0,
    )


@pytest.mark.parametrize(("wrong", "accepted"), [(0.0, True), (0.5, False)])
def test_what_is_clear_takes_the_first_rows_and_one_seed(wrong, accepted) -> None:
    trials = Planted({10: wrong})
    found = judge(trials).judge(cut, 10)
    assert (found.accepted, found.rows, found.seeds, found.final) == (accepted, 100, (4,), False)
    assert {rows for _, _, rows in trials.asked} == {100}


def test_rows_first_and_then_seeds_are_spent_where_it_is_undecided() -> None:
    trials = Planted({10: 0.05}, by_seed={5: 0.004, 6: -0.002})
    found = judge(trials).judge(cut, 10)
    assert (found.rows, found.final, found.seeds) == (ROWS, True, (4, 5, 6))
    order = list(dict.fromkeys((seed, rows) for _, seed, rows in trials.asked))
    assert order == [(4, 100), (4, 200), (4, 400), (4, 800), (4, ROWS), (5, ROWS), (6, ROWS)]
    assert found.within.difference.value == pytest.approx(-0.05 - 0.002 / 3, abs=0.002)
    assert found.best == 6
    assert [one["seed"] for one in found.tried] == [4, 5, 6]
    assert {one["accepted"] for one in found.tried} == {found.accepted}


@pytest.mark.parametrize(
    # the second: another seed could still lift it, and after that one none could
    ("wrong", "drop", "seeds"),
    [(0.006, 0.005, (4,)), (0.024, 0.02, (4, 5))],
)
def test_no_more_seeds_where_the_rows_cannot_tell(wrong, drop, seeds) -> None:
    trials = Planted({10: wrong}, by_seed={5: 0.004, 6: -0.002})
    trials.stages = [100, 250]
    found = judge(trials, drop).judge(cut, 10)
    assert found.within.possible > 0.05
    assert found.within.probability < 0.95
    assert (found.seeds, found.accepted, found.final) == (seeds, False, True)


def test_rows_stop_growing_when_it_is_clear() -> None:
    found = judge(Planted({10: 0.02})).judge(cut, 10)
    assert found.accepted
    assert found.rows == 100 or found.within.probability >= 0.95
    assert not found.final
    assert found.seeds == (4,)


@pytest.mark.parametrize("confidence", [0.1, 0.9])
def test_the_confidence_says_what_is_taken(confidence) -> None:
    found = judge(Planted({10: 0.05}), confidence=confidence, seeds=1).judge(cut, 10)
    assert 0.1 < found.within.probability < 0.9
    assert found.accepted == (confidence == 0.1)


def test_a_verdict_is_remembered_and_a_thorough_one_stays() -> None:
    trials = Planted({10: 0.0})
    own = judge(trials)
    first = own.judge(cut, 10)
    count = len(trials.asked)
    assert own.judge(cut, 10) is first
    assert len(trials.asked) == count
    sure = own.judge(cut, 10, thorough=True)
    assert sure.final
    assert sure.rows == ROWS
    assert own.judge(cut, 10) is sure


def test_without_a_bound_all_rows_are_scored_and_nothing_is_judged() -> None:
    trials = Planted({10: 0.3})
    made: Any = trials
    own = Judge(trials=made, bound=None, search_options=SearchOptions(), seed=0, sign=1.0)
    (tried,) = own.judge(cut, 10).tried
    assert (tried["rows"], tried["probability"], tried["accepted"]) == (ROWS, None, None)
    assert tried["difference"]["value"] == pytest.approx(-0.3, abs=0.01)


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        (MaxDrop(0.01, True), "1 % of 0.850 needs about 189 rows for a probability of 80 % where "
         "no "
         "row changes, and about 491 where one in 20 does; there are 400 in the selection set."),
        (MaxDrop(0.05, False), "0.05 in accuracy needs about 32 rows"),
        (MaxDrop(0.0, False), "0 in accuracy cannot be shown on any number of rows"),
    ],
)  # fmt: skip
def test_it_says_how_many_rows_a_bound_needs(bound: MaxDrop, words: str) -> None:
    labels = np.arange(400) % 2
    said = np.where(np.arange(400) % 20 < 3, 1 - labels, labels)
    full: Any = SimpleNamespace(
        outcome=Outcome(said, labels), n=400, score=0.85,
        scores=(Score(metric="accuracy", value=0.85, low=0.8, high=0.9),),
    )  # fmt: skip
    assert words in rows_line(full, bound, 0.8)


def test_where_rows_are_too_few_nothing_is_accepted_and_the_probability_is_unknown() -> None:
    trials = Planted({5: 0.0})
    trials.stages = [ROWS]
    found = judge(trials)
    values = np.arange(20.0)

    def few(*_: Any) -> Any:
        scores = (Score(metric="spearman", value=1.0, low=np.nan, high=np.nan),)
        return SimpleNamespace(outcome=Outcome(values, values), scores=scores, score=1.0)

    trials.before = trials.after = few  # type: ignore[method-assign]
    verdict = found.judge(cut, 5)
    assert not verdict.accepted
    (one,) = verdict.tried
    assert one["probability"] is None
    assert one["difference"]["no_interval"] == "it takes 60 rows, and there are 20"


def test_what_few_rows_cannot_show_is_asked_of_more() -> None:
    """No row of the first 100 changed: that is within 0.0004 with 4 %, and is not ruled out."""
    trials = Planted({5: 0.0})
    found = judge(trials, drop=0.0004, seeds=1).judge(cut, 5)
    assert trials.asked[0][2] == 100
    assert found.rows == ROWS
    assert found.within.probability == pytest.approx(0.33, abs=0.08)
