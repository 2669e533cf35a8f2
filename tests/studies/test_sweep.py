from __future__ import annotations

import copy
import json
import math
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.stats import spearmanr

from headcount.base.errors import UsageError
from headcount.heads import Mask
from headcount.learned.keeper import AllClosedError, Keeper
from headcount.learned.methods import StraightThrough
from headcount.learned.run import learn
from headcount.models.find import layout
from headcount.models.remove import remove
from headcount.runs.cutting import PruningRun
from headcount.runs.prune_result import DataBudget
from headcount.statistics import rank_correlation
from headcount.studies.points import Point
from headcount.studies.sweep import Sweep
from headcount.training.evaluate import evaluate
from headcount.training.options import TrainOptions
from headcount.training.scoring import Scoring
from runs.flat import sweep
from runs.whole import result
from training.conftest import pets, tiny

PLAIN = Scoring(bootstrap=0)

SHORT = TrainOptions(steps=6, batch_size=16, learning_rate=1e-3)
HOW = {"seeds": 2, "train": SHORT, "bootstrap": 10, "device": "cpu"}
FREE = {"gate_lr": 0.5, "gate_momentum": 0.0}
CLOSING = [1e-6, 0.4, 50.0]
"""Of mu: no gate closes, some do, all do."""


def test_more_penalty_more_sparsity_up_to_all_closed(model, task, tokenizer, tmp_path):
    found = sweep(
        model, task, "mu", CLOSING, options=FREE, tokenizer=tokenizer, out=tmp_path, **HOW
    )
    assert [(run.value, run.seed) for run in found.points] == [
        (value, seed) for value in CLOSING for seed in (0, 1)
    ]
    none, some, every = found.summary()
    assert (none["sparsity"]["mean"], every["sparsity"]["mean"]) == (0, 1)
    assert 0 < some["sparsity"]["mean"] < 1
    assert [row["all_closed"] for row in found.summary()] == [0, 0, 2]
    assert some["kept"] == 12 * (1 - some["sparsity"]["mean"])
    assert {run.budget.steps for run in found.points if run.all_closed is None} == {6}
    assert found.trends()["sparsity"]["rho"] > 0.9
    for row in found.summary():
        versus = row["against_all_heads"]
        assert versus["mean"] == pytest.approx(row["difference"]["value"])
        assert (versus["comparisons"], row["than_all_heads"]) == (3, versus["verdict"])
        assert versus["p_corrected"] >= versus["p"]
    full = evaluate(model, task, tokenizer=tokenizer, scoring=Scoring(bootstrap=10))
    assert found.full["score"] == full.score
    assert every["relative"] == every["score"]["mean"] / full.score
    runs = list((tmp_path / "runs").iterdir())
    assert len(runs) == 6
    assert all((run / "record.json").is_file() for run in runs)  # no work folder left
    json.dumps(found.to_json())
    found.save(tmp_path, "sweep")
    table = pq.read_table(tmp_path / "sweep.parquet").to_pylist()
    assert [row["all_closed"] for row in table] == [False] * 4 + [True] * 2
    assert [row["score"] for row in table] == [run.score for run in found.points]


def test_a_run_is_that_of_the_method_alone(model, task, tokenizer):
    found = sweep(model, task, "mu", CLOSING[:2], options=FREE, tokenizer=tokenizer, **HOW)
    run = found.points[2]
    alone = learn(
        model, task, StraightThrough(**FREE, mu=0.4),
        train=replace(SHORT, seed=run.seed), tokenizer=tokenizer, device="cpu",
    )  # fmt: skip
    assert run.pattern == alone.mask.pattern
    small = remove(alone.model, alone.mask)
    assert run.score == evaluate(small, task, tokenizer=tokenizer, scoring=PLAIN).score
    assert run.learned is not None
    assert run.learned.route["asked"] is None


def test_all_closed_is_scored_without_heads_and_says_so(tokenizer):
    # ranks of one answer tell other weights; the first steps close nothing, so weights move
    model, task = tiny(tokenizer, num_labels=1), pets("regression")
    slow = {"gate_lr": 0.05, "gate_momentum": 0.0, "gate_schedule": "constant"}
    found = sweep(
        model, task, "mu", [1e-6, 4.0], options=slow, tokenizer=tokenizer, **HOW | {"seeds": 1}
    )
    run = found.points[-1]
    assert run.all_closed is not None
    assert 1 < run.all_closed.step == run.budget.steps <= 6
    assert run.all_closed.last_open_kept > 0
    assert "all heads removed" in run.all_closed.scored
    assert (run.kept, run.pattern, run.sparsity) == (0, "000", 1.0)
    # the step that closed them is not taken: the weights are those of one step less
    nothing = Mask(layout(model), frozenset())
    fewer = learn_until(model, task, tokenizer, run.all_closed.step - 1, slow)
    how = {"tokenizer": tokenizer, "scoring": PLAIN}
    assert run.score == evaluate(fewer, task, nothing, **how).score
    assert run.score != evaluate(model, task, nothing, **how).score


def learn_until(model, task, tokenizer, steps, options):
    """The weights that the run of mu = 4 has after so many steps, by a callback that looks on."""
    kept = {}
    before = Keeper.on_step_end

    def look(self, args, state, control, **more):
        before(self, args, state, control, **more)
        if state.global_step == steps:
            kept["model"] = copy.deepcopy(more["model"])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Keeper, "on_step_end", look)
        gates = StraightThrough(**options, mu=4.0)
        with pytest.raises(AllClosedError):
            learn(model, task, gates, train=SHORT, tokenizer=tokenizer, device="cpu")
    return kept["model"].eval()


def test_finished_runs_are_kept(model, task, tokenizer, tmp_path, monkeypatch):
    how = {"options": FREE, "tokenizer": tokenizer, "out": tmp_path, **HOW}
    first = sweep(model, task, "mu", CLOSING[1:], **how)
    assert any(run.all_closed for run in first.points)
    asked = []
    once = PruningRun.decide

    def asking(self):
        asked.append((self.options.method.mu, self.seed))
        return once(self)

    monkeypatch.setattr(PruningRun, "decide", asking)
    again = sweep(model, task, "mu", CLOSING[1:], **how)
    assert asked == []
    assert again.points == first.points
    more = sweep(model, task, "mu", CLOSING, **how)
    assert asked == [(1e-6, 0), (1e-6, 1)]
    assert more.points[2:] == first.points
    for changed, said in (
        ({"options": {}}, "gate_momentum was 0.0, now not there"),
        ({"limit": 9}, "limit was None"),
    ):
        with pytest.raises(UsageError, match=said):
            sweep(model, task, "mu", CLOSING, **how | changed)
    with pytest.raises(UsageError, match="over was mu, now settle"):
        sweep(model, task, "settle", [0.2, 0.4], **how)


def test_what_one_value_left_unfinished_is_not_taken_up_by_another(
    model, task, tokenizer, tmp_path, monkeypatch
):
    how = {"options": FREE, "tokenizer": tokenizer, "out": tmp_path, **HOW | {"seeds": 1}}
    scored = PruningRun.score

    def killed(self, scored_model, masks=None):
        if scored_model is model:
            return scored(self, scored_model, masks)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(PruningRun, "score", killed)
        with pytest.raises(KeyboardInterrupt):
            sweep(model, task, "mu", [0.4, 0.2], **how)
    (left,) = (tmp_path / "work").iterdir()
    before = {path: path.read_bytes() for path in left.rglob("*") if path.is_file()}
    other = sweep(model, task, "mu", [0.1, 0.2], **how)
    assert [run.value for run in other.points] == [0.1, 0.2]
    assert {path: path.read_bytes() for path in left.rglob("*") if path.is_file()} == before
    sweep(model, task, "mu", [0.4, 0.2], **how)
    assert not left.exists()
    assert (tmp_path / "runs" / left.name.partition("-")[0] / "record.json").is_file()


def made(values, sparsities) -> Sweep:
    points = [
        Point(
            method="straight-through", ratio="free", seed=0, kept=6, pattern="222", score=0.5,
            low=0, high=1, n=9, difference=0.5, difference_low=0, difference_high=1,
            budget=result(DataBudget, {"steps": 1}), learned=None, seconds=1, value=value,
            sparsity=sparsity,
        )
        for value, sparsity in zip(values, sparsities, strict=True)
    ]  # fmt: skip
    return Sweep(about={"metric": "accuracy"}, full={"score": 0.0}, points=points)


def test_the_rank_correlation_is_scipys_and_its_p_counts_orders():
    rng = np.random.default_rng(0)
    x, y = np.repeat([1, 2, 3, 4], 4), rng.normal(size=16).round(1) + np.repeat([0, 0, 1, 1], 4)
    found, expected = rank_correlation(x, y), spearmanr(x, y)
    assert found["rho"] == pytest.approx(expected.statistic)
    assert found["p"] == pytest.approx(expected.pvalue, abs=0.01)
    assert rank_correlation([1, 2, 3], [3, 2, 1])["p"] == pytest.approx(1 / 3)
    assert rank_correlation([1, 2, 3, 4], [1, 2, 3, 4])["p"] == pytest.approx(2 / 24)


def test_nothing_to_correlate_and_nothing_to_relate_to():
    found = made([0.1, 0.2], [0.5, 0.5])
    assert math.isnan(found.trends()["sparsity"]["rho"])
    assert math.isnan(found.summary()[0]["relative"])
    assert math.isnan(found.summary()[0]["sparsity"]["low"])  # of one seed


@pytest.mark.parametrize(
    ("over", "values", "how", "message"),
    [
        ("muu", [1, 2], {}, "'muu' is no number.*Did you mean 'mu'.*gate_lr"),
        ("coarse", [1, 2], {}, "'coarse' is no number"),
        ("mu", [0.1], {}, "at least two values of 'mu', not 1"),
        ("mu", [0.1, 0.2, 0.1], {}, r"value 0\.1 of 'mu' is named twice"),
        ("mu", [0.1, math.nan], {}, "nan is no value"),
        ("mu", [0.1, -1.0], {}, "mu must be above 0, not -1"),
        ("mu", [0.1, 0.2], {"options": {"mu": 0.1}}, "cannot also be set"),
        ("mu", [0.1, 0.2], {"options": {"gate_lrr": 0.1}}, "Did you mean 'gate_lr'"),
        ("mu", [0.1, 0.2], {"seeds": 0}, "at least one seed"),
        ("mu", [0.1, 0.2], {"method": "importance"}, "trains no gates"),
        ("mu", [0.1, 0.2], {"method": "subsett"}, "Did you mean 'subset'"),
        ("hot", [0.5, 1.0], {"method": "subset"}, "exactly as many heads as it is asked for"),
    ],
)  # fmt: skip
def test_refusals(model, task, tokenizer, tmp_path, over, values, how, message):
    out = tmp_path / "s"
    with pytest.raises(UsageError, match=message):
        sweep(model, task, over, values, tokenizer=tokenizer, out=out, **how)
    assert not out.exists()
