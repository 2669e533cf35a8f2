"""A study of prunes under way: plan after plan in one folder, by one executor."""

from __future__ import annotations

import json

import pytest

import headcount as hc
from headcount.base.errors import UsageError
from headcount.pruning.methods import make_method
from headcount.runs.kinds.prune import Prune
from headcount.runs.prune import run_of
from headcount.studies import opened as module
from headcount.studies.outcome import PREDICTIONS, kept
from headcount.studies.prunes import PruneStudy, open_study, plan_prunes
from headcount.training.scoring import Scoring


@pytest.fixture
def study(model, task, tokenizer, tmp_path):
    subject = open_study(model, task, tokenizer)
    like = Prune(
        method=make_method("random"), ratio=0.5, baseline=0, gated=True,
        scoring=Scoring(limit=20, bootstrap=0),
    )  # fmt: skip
    run = run_of(subject, like)

    def plan(*seeds: int):
        return plan_prunes(run, "grown", [({"seed": seed}, like, "") for seed in seeds])

    made = PruneStudy(
        subject=subject, like=like, about={"task": "pets"}, plan=plan(0), out=tmp_path, grows=True
    )
    return made, plan


def test_plans_are_executed_one_after_the_other_by_one_executor(study, tmp_path, monkeypatch):
    made, plan = study
    executors = []
    plain = module.make_executor

    def counted(*options):
        executors.append(plain(*options))
        return executors[-1]

    monkeypatch.setattr(module, "make_executor", counted)
    with made.opened() as opened:
        file = tmp_path / "studies" / "grown.json"
        assert json.loads(file.read_text())["runs"] == []
        first = opened.scored(plan(0, 1))
        second = opened.scored(plan(1, 2))
    assert len(executors) == 1
    assert first[1].key == second[0].key
    assert first[1].record == second[0].record
    assert json.loads(file.read_text())["runs"] == sorted({run.key for run in (*first, *second)})


def test_predictions_are_what_evaluate_predicts(study, model, task, tokenizer, tmp_path):
    made, plan = study
    with made.opened() as opened:
        (run,) = opened.scored(plan(3))
        full = opened.full()
    mask = hc.Mask.from_json(run.record["mask"])
    scoring = Scoring(limit=20, bootstrap=0)
    for evaluation, masks in ((run.evaluation, [mask]), (full, None)):
        want = hc.evaluate(model, task, masks, scoring=scoring, tokenizer=tokenizer)
        want = want if masks is None else want[0]
        assert evaluation.outcome.predictions.tolist() == want.outcome.predictions.tolist()
        assert evaluation.score == want.score
    assert kept(tmp_path / "runs" / run.key, run.key, PREDICTIONS) == run.evaluation


def test_another_question_in_its_folder_is_refused_before_anything_is_made(study):
    made, plan = study
    with made.opened() as opened:
        opened.records(plan(0))
    other = PruneStudy(**{**vars(made), "about": {"task": "cats"}})
    with pytest.raises(UsageError, match="task was pets, now cats"), other.opened():
        pytest.fail("opened")
