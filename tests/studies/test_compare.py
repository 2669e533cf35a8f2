from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import ttest_rel

import headcount as hc
from headcount.base.errors import UsageError
from headcount.runs.prune_result import DataBudget
from headcount.statistics import interval, paired
from headcount.studies.compare import Comparison
from headcount.studies.points import Point
from headcount.training.options import TrainOptions
from headcount.views.tables.pruning import compare_table
from runs.flat import compare
from runs.whole import result

SHORT = TrainOptions(steps=4, batch_size=16, learning_rate=1e-3)
HOW = {"ratio": 0.5, "seeds": 2, "train": SHORT, "bootstrap": 10, "samples": 16, "device": "cpu"}


AGAINST = ("against_random", "against_all_heads")


def test_equal_sparsity_and_equal_training(model, task, tokenizer, tmp_path):
    methods = ["all-heads", "random", "importance", "subset"]
    found = compare(model, task, methods, tokenizer=tokenizer, out=tmp_path, **HOW)
    assert [(run.method, run.seed) for run in found.points] == [
        (method, seed) for method in methods for seed in (0, 1)
    ]
    assert [run.kept for run in found.points] == [12] * 2 + [6] * 6
    assert {(run.budget.steps, run.budget.examples) for run in found.points} == {(4, 64)}
    measured = {run.method: run.budget.examples_measured for run in found.points}
    assert measured == {"all-heads": 0, "random": 0, "importance": 16, "subset": 0}
    assert [run.learned is not None for run in found.points] == [False] * 6 + [True] * 2
    rows = {row["method"]: row for row in found.summary()}
    assert "against_random" not in rows["random"]
    assert rows["subset"]["against_random"]["seeds"] == 2
    assert rows["subset"]["gap"] is not None
    versus = [row[key] for row in rows.values() for key in AGAINST if key in row]
    assert len(versus) == 6
    assert {each["comparisons"] for each in versus} == {5}  # all-heads and random are one, twice
    assert all(each["p_corrected"] >= each["p"] for each in versus)
    records = [hc.load_record(each) for each in (tmp_path / "runs").iterdir()]  # no work folder
    assert sorted((each["method"], each["seed"]) for each in records) == sorted(
        (run.method, run.seed) for run in found.points
    )
    json.dumps(found.to_json())


def test_finished_runs_are_kept(model, task, tokenizer, tmp_path, monkeypatch):
    first = compare(model, task, ["random"], tokenizer=tokenizer, out=tmp_path, **HOW)
    before = {path: path.read_bytes() for path in (tmp_path / "runs").rglob("record.json")}
    assert len(before) == 2
    more = compare(model, task, ["random"], tokenizer=tokenizer, out=tmp_path, **HOW | {"seeds": 3})
    assert more.points[:2] == first.points
    assert len(more.points) == 3
    after = {path: path.read_bytes() for path in (tmp_path / "runs").rglob("record.json")}
    assert len(after) == 3
    assert before.items() <= after.items()
    with pytest.raises(UsageError, match=r"ratio was 0\.5, now 0\.25"):
        compare(model, task, ["random"], tokenizer=tokenizer, out=tmp_path, **HOW | {"ratio": 0.25})


def test_recovery_before_the_training(model, task, tokenizer, monkeypatch):
    solved = []
    monkeypatch.setattr(
        "headcount.repair.recovery.recover_layers",
        lambda small, *_, **more: solved.append(small) or [],
    )
    found = compare(
        model, task, ["importance", "importance+recover"], tokenizer=tokenizer,
        options={"importance": {"normalize": "l2"}}, **HOW | {"seeds": 1},
    )  # fmt: skip
    plain, recovered = found.points
    assert (plain.method, recovered.method) == ("importance", "importance+recover")
    assert plain.pattern == recovered.pattern
    assert len(solved) == 1
    assert recovered.budget.steps == plain.budget.steps
    with pytest.raises(UsageError, match="leave it out"):
        compare(model, task, ["subset+recover"], tokenizer=tokenizer, **HOW)


def made(scores: dict[str, list[float]]) -> Comparison:
    points = [
        Point(
            method=method, ratio=0.5, seed=seed, kept=6, pattern="222", sparsity=0.5, score=score,
            low=0, high=1, n=9, difference=score - 0.75, difference_low=-1, difference_high=0,
            budget=result(DataBudget, {"epochs": 1}), learned=None, seconds=1,
        )
        for method, values in scores.items()
        for seed, score in enumerate(values)
    ]  # fmt: skip
    about = {"metric": "accuracy", "task": "t", "split": "dev", "ratio": 0.5}
    full = {"score": 0.75, "low": 0.7, "high": 0.8, "n": 9}
    return Comparison(about=about, full=full, points=points)


def test_the_paired_test_is_scipys():
    random, own = [0.5, 0.61, 0.43, 0.7, 0.55], [0.6, 0.63, 0.5, 0.71, 0.66]
    rows = made({"random": random, "subset": own}).summary()
    found = rows[1]["against_random"]
    expected = ttest_rel(own, random)
    assert found["p"] == pytest.approx(expected.pvalue)
    low, high = expected.confidence_interval(0.95)
    assert (found["low"], found["high"]) == (pytest.approx(low), pytest.approx(high))
    assert rows[1]["mean"] == pytest.approx(np.mean(own))


def test_verdicts_are_corrected_over_the_whole_table():
    random = np.array([0.5, 0.61, 0.43, 0.7, 0.55])
    own = random + np.array([0.01, 0.06, 0.03, 0.09, 0.05])  # p = 0.024 alone
    alone = made({"random": random, "a": own}).summary()[1]
    assert (alone["than_random"], alone["against_random"]["seeds_needed"]) == ("better", None)
    more = {f"{n}": random + np.roll([0.01, -0.02, 0.03, -0.01, 0], n) for n in range(8)}
    among = made({"random": random, "a": own, **more}).summary()[1]
    assert among["than_random"] == "alike"
    versus = among["against_random"]
    assert versus["p"] == alone["against_random"]["p"] < 0.05 < versus["p_corrected"]
    assert (versus["comparisons"], versus["seeds_needed"] > 5) == (9, True)
    shown = str(compare_table(made({"random": random, "a": own, **more})).caption)
    assert f"a ({versus['seeds_needed']} seeds)" in shown
    assert "Corrected for 9 comparisons (Holm)" in shown


def test_differences_without_spread():
    assert paired({0: 0.5, 1: 0.5}, {0: 0.5, 1: 0.5})["p"] == 1.0
    assert paired({0: 0.75, 1: 0.75}, {0: 0.5, 1: 0.5})["p"] == 0.0
    assert np.isnan(paired({0: 0.7}, {0: 0.5})["p"])
    assert np.isnan(interval([0.5])[1])
    assert paired({0: 0.5}, {1: 0.5})["seeds"] == 0


def test_refusals(model, task, tokenizer):
    for methods, message in (
        ([], "at least one method"),
        ([hc.Layers(empty="odd")], "'layers' has no ratio"),
        (["random", "random"], "named twice"),
        (["subsett"], "Did you mean 'subset'"),
    ):
        with pytest.raises(UsageError, match=message):
            compare(model, task, methods, tokenizer=tokenizer)
    with pytest.raises(UsageError, match="at least one seed"):
        compare(model, task, ["random"], seeds=0, tokenizer=tokenizer)
    with pytest.raises(UsageError, match="above 0"):
        compare(model, task, ["subset"], options={"subset": {"cold": 0.0}}, tokenizer=tokenizer)


def test_functions_are_compared_by_their_names(model, task, tokenizer):
    def last_heads(model, calibration, ratio):
        layout = hc.layout(model)
        return hc.Mask(layout, frozenset(list(layout)[-layout.kept_at(ratio) :]))

    for methods in (["random", last_heads], {"random": "random", "last": last_heads}):
        found = compare(model, task, methods, tokenizer=tokenizer, **HOW | {"seeds": 1})
        assert [run.method for run in found.points] == list(
            methods if isinstance(methods, dict) else ["random", "last_heads"]
        )
        assert found.points[1].pattern == "024"
