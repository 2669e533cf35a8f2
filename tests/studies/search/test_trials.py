from __future__ import annotations

from contextlib import contextmanager

import pytest

import headcount as hc
from headcount.pruning.methods import as_method
from headcount.runs.cutting import PruningRun
from headcount.runs.kinds.prune import Prune
from headcount.runs.prune import run_of
from headcount.studies.outcome import PREDICTIONS
from headcount.studies.prunes import PruneStudy, open_study
from headcount.studies.search.trials import Candidate, Trials, candidate_plan
from headcount.training.scoring import Scoring

SCORING = Scoring(split="dev:selection:0.5:0", bootstrap=20)


def wanted(repair: bool = False, ratio: float = 0.5) -> Candidate:
    options = Prune(
        method=as_method("importance"), ratio=ratio, scoring=SCORING, baseline=0, gated=not repair,
        calibration=hc.Calibration(samples=16),
        repair=(hc.Recover(),) if repair else (),
    )  # fmt: skip
    return Candidate(label="importance", options=options, seed=0)


@contextmanager
def trials(model, task, tokenizer, candidate, folder=None):
    subject = open_study(model, task, tokenizer)
    like = run_of(subject, candidate.options)
    study = PruneStudy(
        subject=subject, like=candidate.options, about={"task": "a"}, out=folder, grows=True,
        plan=candidate_plan(like, candidate), note=lambda text: None,
    )  # fmt: skip
    with study.opened() as opened:
        yield Trials(study=opened, like=like, first_rows=10, report=lambda text: None)


@pytest.mark.parametrize("repair", [False, True])
def test_what_is_scored_is_what_prune_and_evaluate_score(model, task, tokenizer, repair):
    candidate = wanted(repair)
    with trials(model, task, tokenizer, candidate) as tried:
        rows = len(tried.rows)
        assert tried.stages == [10, 20, 40, rows]
        few, every = tried.after(candidate, 10), tried.after(candidate, rows)
        before = [tried.before(candidate, count) for count in (10, rows)]
        records = [tried.run(candidate, count).record for count in (10, rows)]
    pruning = PruningRun(subject=open_study(model, task, tokenizer), options=candidate.options)
    decision = pruning.decide()
    small, masks = (pruning.cut(decision)[0], None) if repair else (model, [decision.mask])
    whole = pruning.score(small, masks)
    assert (every.score, every.n) == (whole.score, rows)
    assert every.outcome.predictions.tolist() == whole.outcome.predictions.tolist()
    full = hc.evaluate(model, task, scoring=SCORING, tokenizer=tokenizer)
    assert before[1].score == full.score
    assert (few.n, few.rows) == (10, before[0].rows)
    assert few.rows != every.rows
    assert [record["scores"]["n"] for record in records] == [10, rows]
    assert set(task.load(SCORING.split, limit=10).texts[0]) < set(task.load(SCORING.split).texts[0])


def test_nothing_is_pruned_twice(model, task, tokenizer, tmp_path, monkeypatch):
    candidate = wanted(repair=True)
    with trials(model, task, tokenizer, candidate, tmp_path) as tried:
        first = tried.after(candidate, 20)
    with monkeypatch.context() as patch:
        patch.setattr(PruningRun, "cut", lambda *_: pytest.fail("pruned again"))
        with trials(model, task, tokenizer, candidate, tmp_path) as again:  # as after a kill
            same = again.after(candidate, 20)
    assert same == first
    assert same.outcome.predictions.tolist() == first.outcome.predictions.tolist()
    (run,) = (tmp_path / "runs").iterdir()
    assert {path.name for path in run.iterdir()} == {"record.json", PREDICTIONS}


def test_a_run_without_predictions_is_made_again(model, task, tokenizer, tmp_path):
    candidate = wanted()
    with trials(model, task, tokenizer, candidate, tmp_path) as tried:
        first = tried.after(candidate, 20)
    (path,) = (tmp_path / "runs").glob(f"*/{PREDICTIONS}")
    path.unlink()
    with trials(model, task, tokenizer, candidate, tmp_path) as again:
        assert again.after(candidate, 20).score == first.score
    assert path.is_file()


def test_a_plan_has_the_seed_and_the_options_of_every_candidate(model, task, tokenizer):
    one, other = wanted(), wanted(ratio=0.25)
    like = run_of(open_study(model, task, tokenizer), one.options)
    plan = candidate_plan(like, one, other)
    assert plan.name == "search"
    assert [cell.run.options for cell in plan.cells] == [one.options, other.options]
