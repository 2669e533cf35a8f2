from __future__ import annotations

import numpy as np
import pytest

import headcount as hc
from headcount.pruning.methods import as_method
from headcount.runs.cutting import PruningRun
from headcount.runs.kinds.prune import Prune
from headcount.runs.subject import make_subject
from headcount.studies.search import trials as module
from headcount.studies.search.candidates import Candidate, Candidates
from headcount.studies.search.store import Store
from headcount.studies.search.trials import PREDICTIONS, Trials
from headcount.training.scoring import Scoring

SCORING = Scoring(split="dev:selection:0.5:0", bootstrap=20)


def wanted(repair: bool = False) -> Candidate:
    asked = Prune(
        method=as_method("importance"), ratio=0.5, scoring=SCORING, baseline=0, gated=not repair,
        calibration=hc.Calibration(samples=16),
        repair=(hc.Recover(),) if repair else (),
    )  # fmt: skip
    return Candidate(label="importance", options=asked, seed=0)


def trials(model, task, tokenizer, folder=None) -> Trials:
    subject = make_subject(model, task, tokenizer=tokenizer)
    study = Candidates(
        subject=subject, store=Store(folder, "a"), about={"a": 1}, note=lambda text: None
    )
    return Trials(study=study, scoring=SCORING, first_rows=10, report=lambda text: None)


@pytest.mark.parametrize("repair", [False, True])
def test_what_is_scored_piece_by_piece_is_what_is_scored_at_once(model, task, tokenizer, repair):
    own = trials(model, task, tokenizer)
    rows = len(own.rows)
    assert own.stages == [10, 20, 40, rows]
    cut = wanted(repair)
    few, all_ = own.after(cut, 10), own.after(cut, rows)
    cutting = own.study.pruning(cut)
    decision = cutting.decide()
    small, masks = (cutting.cut(decision)[0], None) if repair else (model, [decision.mask])
    whole = cutting.score(small, masks)
    assert all_.score == whole.score
    assert all_.n == whole.n == rows
    assert few.n == 10
    order = own.order[:10]
    assert few.outcome.predictions.tolist() == whole.outcome.predictions[order].tolist()
    before = own.before(cut, rows)
    full = hc.evaluate(model, task, scoring=SCORING, tokenizer=tokenizer)
    assert before.score == full.score
    assert own.before(cut, 10).rows == few.rows != all_.rows


def test_nothing_is_scored_or_cut_twice(model, task, tokenizer, tmp_path, monkeypatch):
    scored: list[int] = []
    plain = module.evaluate_rows

    def counting(model, rows, *args, **how):
        scored.append(len(rows))
        return plain(model, rows, *args, **how)

    monkeypatch.setattr(module, "evaluate_rows", counting)
    own, cut = trials(model, task, tokenizer, tmp_path), wanted(repair=True)
    first = own.after(cut, 20)
    assert scored == [10, 10]
    record = own.study.store.get(own.id_of(cut))
    assert record is not None
    assert record["scores"]["n"] == 20
    again = trials(model, task, tokenizer, tmp_path)  # as after a kill
    with monkeypatch.context() as patch:
        patch.setattr(PruningRun, "cut", lambda *_: pytest.fail("cut again"))
        assert again.after(cut, 20).score == first.score
        assert again.after(cut, 10).n == 10
    last = again.after(cut, 40)
    assert scored == [10, 10, 20]
    assert last.outcome.predictions[:20].tolist() == first.outcome.predictions.tolist()
    record = again.study.store.get(own.id_of(cut))
    assert record is not None
    assert record["scores"]["n"] == 40


def test_a_kill_between_the_two_files_costs_a_piece(model, task, tokenizer, tmp_path):
    own, cut = trials(model, task, tokenizer, tmp_path), wanted()
    first = own.after(cut, 20)
    where = tmp_path / "runs" / own.id_of(cut)
    kept = (where / PREDICTIONS).read_bytes()
    (where / PREDICTIONS).unlink()
    again = trials(model, task, tokenizer, tmp_path).after(cut, 20)
    assert again.outcome.predictions.tolist() == first.outcome.predictions.tolist()
    (where / "record.json").unlink()  # what was said is taken with its record only
    again = trials(model, task, tokenizer, tmp_path).after(cut, 20)
    assert np.array_equal(again.outcome.predictions, first.outcome.predictions)
    assert (where / PREDICTIONS).read_bytes()[:40] == kept[:40]
    assert (where / "record.json").is_file()
