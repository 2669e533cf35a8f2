"""What a run leaves, and which of several is the best."""

from __future__ import annotations

from pathlib import Path

import pytest

import headcount as hc
from headcount.base.errors import UsageError
from headcount.runs.kinds.evaluate import Evaluate, EvaluateResult
from headcount.runs.kinds.importance import ImportanceOptions
from headcount.runs.kinds.probe import Probe, ProbeResult
from headcount.runs.kinds.redundancy import RedundancyOptions
from headcount.runs.kinds.train import Train, TrainResult
from headcount.runs.products import best_of, on_inputs, product_of, score_of, target_of
from headcount.runs.record import Record
from headcount.runs.run import Best, Run
from runs.whole import result

TRAIN = Run("train", "pocket", task="sst2", options=Train())
SCORE = Run("evaluate", TRAIN, task="sst2", options=Evaluate())


def scored(run: Run, score: float | None, metric: str = "accuracy") -> Record:
    part = {"metric": metric, "score": score, "low": None, "high": None, "n": 9}
    return Record(
        run=run, identity={"model": "m"}, result=result(TrainResult, {"evaluation": part})
    )


@pytest.mark.parametrize(
    ("run", "target", "product"),
    [
        (TRAIN, ".", "."),
        (SCORE, None, "record.json"),
        (Run("redundancy", "m", options=RedundancyOptions()), "redundancy.npz", "redundancy.npz"),
        (Run("importance", "m", options=ImportanceOptions()), None, "record.json"),
        (Run("prune", "m", options=hc.Prune(method=hc.Random(), ratio=0.5)), ".", "."),
        (
            Run("prune", "m", options=hc.Prune(method=hc.Random(), ratio=0.5, gated=True)),
            None,
            "record.json",
        ),
    ],
)
def test_what_a_run_leaves_in_its_folder(run: Run, target: str | None, product: str):
    folder = Path("runs/k")
    assert target_of(run, folder) == (None if target is None else folder / target)
    assert product_of(run, folder) == folder / product


def test_the_best_is_the_highest_score_or_the_lowest_perplexity():
    others = [Run("train", "pocket", task="sst2", options=Train(), seed=seed) for seed in range(3)]
    high = [scored(run, value) for run, value in zip(others, (0.5, 0.9, None), strict=True)]
    assert best_of(list(zip(others, high, strict=True))) is others[1]
    low = [scored(run, value, "perplexity") for run, value in zip(others, (9, 3, 4), strict=True)]
    assert best_of(list(zip(others, low, strict=True))) is others[1]
    with pytest.raises(UsageError, match="scored differently"):
        best_of([(others[0], high[0]), (others[1], low[1])])
    with pytest.raises(UsageError, match="None of the runs has a score"):
        best_of([(others[2], high[2])])
    probe = Run("probe", "m", options=Probe())
    unscored = Record(run=probe, identity={}, result=result(ProbeResult, {}))
    with pytest.raises(UsageError, match="'probe' has no score"):
        score_of(unscored)


def test_a_run_is_put_on_what_its_inputs_made(tmp_path: Path):
    near = Run("redundancy", "m", options=RedundancyOptions())
    asked = Run("prune", TRAIN, options=hc.Prune(method=hc.Cluster(), ratio=0.5)).to_plain()
    asked["options"]["method"]["redundancy"] = near.to_plain()
    ready = on_inputs(Run.read(asked), lambda run: tmp_path / run.kind)
    assert ready.model == str(tmp_path / "train")
    assert ready.options.method.redundancy == str(tmp_path / "redundancy" / "redundancy.npz")


def test_the_best_of_evaluations_stands_for_the_model_it_scored(tmp_path: Path):
    runs = [
        Run("evaluate", f"m{at}", task="sst2", options=Evaluate(scoring=hc.Scoring(seed=at)))
        for at in range(2)
    ]
    for run, score in zip(runs, (0.5, 0.7), strict=True):
        part = {"metric": "accuracy", "score": score, "low": None, "high": None, "n": 9}
        scores = result(EvaluateResult, part)
        Record(run=run, identity={"model": run.model}, result=scores).save(tmp_path / run.key)
    last = Run("evaluate", Best(tuple(runs)), task="sst2", options=Evaluate())
    assert on_inputs(last, lambda run: tmp_path / run.key).model == "m1"
