from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

import headcount as hc
from headcount.base.errors import UsageError
from headcount.heads import Layout
from headcount.pruning.cluster import Cluster
from headcount.pruning.methods import MethodInputs
from headcount.pruning.random import Random
from headcount.runs.cutting import PruningRun
from headcount.runs.kinds.prune import Prune
from headcount.runs.run import InMemory, Run
from headcount.studies.curve import pruning_frequency
from headcount.tasks.catalog import open_task
from headcount.training.evaluate import evaluate
from headcount.training.options import TrainOptions
from headcount.training.scoring import Scoring
from runs.flat import curve

PLAIN = Scoring(bootstrap=0)

HOW = {"seeds": 2, "samples": 16, "bootstrap": 20}


@pytest.fixture
def asked(model, task, tokenizer):
    return {"model": model, "task": task, "tokenizer": tokenizer, **HOW}


def test_points_are_what_evaluate_gives(asked, model, task, tokenizer):
    found = curve(methods=["random", "importance"], ratios=[0.25, 0.75], **asked)
    assert len(found.points) == 8
    assert found.full["score"] == evaluate(model, task, tokenizer=tokenizer, scoring=PLAIN).score
    from headcount.pruning.select import select

    for point in found.points:
        assert point.kept == {0.25: 9, 0.75: 3}[point.ratio]
        if point.method == "random":
            mask = select(model, "random", point.ratio, seed=point.seed)
            assert mask.pattern == point.pattern
            assert (
                evaluate(model, task, mask, tokenizer=tokenizer, scoring=PLAIN).score == point.score
            )
    rows = {(row["method"], row["ratio"]): row for row in found.summary()}
    own = [p.score for p in found.points if (p.method, p.ratio) == ("random", 0.25)]
    assert rows["random", 0.25]["mean"] == pytest.approx(sum(own) / 2)
    assert rows["random", 0.25]["worst"] == min(own)
    assert rows["random", 0.25]["relative"] == pytest.approx(sum(own) / 2 / found.full["score"])


def test_finished_points_are_reused_and_a_curve_can_grow(asked, tmp_path, monkeypatch):
    first = curve(methods=["random"], ratios=[0.5], out=tmp_path, **asked)
    _, lost = sorted((tmp_path / "runs").iterdir())
    shutil.rmtree(lost)  # as a kill before it was published leaves it
    scored: list[int] = []
    plain = PruningRun.score_masks

    def counting(self, masks, seeds):
        scored.append(len(masks))
        return plain(self, masks, seeds)

    monkeypatch.setattr(PruningRun, "score_masks", counting)
    monkeypatch.setattr(PruningRun, "_score_full", lambda self: pytest.fail("scored again"))
    again = curve(methods=["random"], ratios=[0.5], out=tmp_path, **asked)
    assert again.points == first.points
    assert scored == [1]
    grown = curve(methods=["random"], ratios=[0.5, 0.9], out=tmp_path, **asked)
    assert scored == [1, 2]
    assert grown.points[:2] == first.points


def test_what_may_differ_finds_what_is_done(asked, tmp_path, monkeypatch):
    """Where the model lies and how often training saves are no part of a question."""
    train = TrainOptions(steps=1, batch_size=4, save_every=1)
    how = {"methods": ["random"], "ratios": [0.5], "out": tmp_path, **asked}
    first = curve(finetune=train, **how)
    monkeypatch.setattr(PruningRun, "decide", lambda self: pytest.fail("computed again"))
    again = curve(finetune=replace(train, save_every=2), **how)
    assert again.points == first.points
    asked["model"].name_or_path = "elsewhere"
    told: list[str] = []
    moved = curve(finetune=train, note=told.append, **how)
    assert moved.points == first.points
    assert ["was begun elsewhere and goes on" in text for text in told] == [True]


def test_a_record_that_is_damaged_is_refused_by_its_name(asked, tmp_path):
    how = {"methods": ["random"], "ratios": [0.5], "out": tmp_path, **asked}
    curve(**how)
    path = sorted((tmp_path / "runs").rglob("record.json"))[0]
    whole = json.loads(path.read_text())
    for change in ({"id": "0"}, {"scores": None}, {"heads": {"after": "six"}}):
        path.write_text(json.dumps(whole | change))
        with pytest.raises(UsageError, match=path.parent.name):
            curve(**how)
    path.write_text(json.dumps(whole))
    curve(**how)
    full = json.loads((tmp_path / "full.json").read_text())
    for change in ({"said": None}, {"scores": []}):
        (tmp_path / "full.json").write_text(json.dumps(full | change))
        with pytest.raises(UsageError, match=r"full\.json"):
            curve(**how)


def test_another_question_in_the_same_folder_is_refused(asked, tmp_path):
    curve(methods=["random"], ratios=[0.5], out=tmp_path, **asked)
    with pytest.raises(UsageError, match="repair was None, now recover"):
        curve(methods=["random"], ratios=[0.5], out=tmp_path, recover=True, **asked)
    curve(methods=["random"], ratios=[0.5], out=tmp_path, recover=True, overwrite=True, **asked)


@pytest.mark.parametrize("by_name", [True, False])
def test_seeds_with_a_new_task_head_are_what_their_runs_give_alone(by_name):
    """A new task head is drawn by the seed of each run, whoever asks for it."""
    task = "pocket-acceptability"
    steps = (hc.Finetune(steps=1, batch_size=4),)
    like = Prune(method=Random(), repair=steps, scoring=Scoring(limit=20, bootstrap=0), baseline=0)
    found = hc.curve(
        "pocket",
        task if by_name else open_task(task),
        ["random"],
        [0.5],
        seeds=2,
        repair=steps,
        scoring=like.scoring,
    )
    for seed, point in enumerate(found.points):
        run = Run("prune", "pocket", task=task, seed=seed, options=replace(like, ratio=0.5))
        alone = hc.run(run).result
        assert (point.seed, point.pattern) == (seed, alone.mask.pattern)
        assert point.score == alone.scores.after.score


def test_repairs(asked):
    train = TrainOptions(steps=1, batch_size=4)
    plain = curve(methods=["random"], ratios=[0.75], **asked)
    solved = curve(methods=["random"], ratios=[0.75], recover=True, finetune=train, **asked)
    assert [p.pattern for p in plain.points] == [p.pattern for p in solved.points]
    assert plain.full | {"seconds": 0} == solved.full | {"seconds": 0}
    assert plain.points != solved.points


def test_how_often_each_head_goes(asked, tmp_path):
    found = curve(methods=["cluster"], ratios=[0.5], **asked)
    assert sum(found.frequency[0.5].values) == pytest.approx(6)
    assert json.dumps(found.to_json())
    found.save(tmp_path, "c")
    assert (
        json.loads((tmp_path / "c.json").read_text())["frequency"] == found.to_json()["frequency"]
    )
    table = pq.read_table(tmp_path / "c.parquet").to_pylist()
    assert [row["score"] for row in table] == [point.score for point in found.points]
    full = found.full["score"]
    assert [row["relative"] for row in table] == [point.score / full for point in found.points]
    far = {"encoder": [[0, 0.1, 0.9], [0.1, 0, 0.9], [0.9, 0.9, 0]]}
    layout = Layout.of(encoder=[3])
    frequency = pruning_frequency(
        Cluster(redundancy=far).prepare(layout, MethodInputs()), 1 / 3, layout
    )
    assert frequency.values[2] == 0
    assert frequency.values[0] + frequency.values[1] == pytest.approx(1)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"methods": []}, "at least one method"),
        ({"ratios": [1.5]}, "between 0 and 1"),
        ({"seeds": 0}, "at least one seed"),
        ({"methods": [hc.Pattern(keep="222")]}, "'pattern' has no ratio, so it has no curve"),
        ({"methods": ["randm"]}, "Did you mean 'random'"),
        ({"methods": ["random", "random"]}, "twice"),
    ],
)
def test_refusals(asked, changes, said):
    with pytest.raises(UsageError, match=said):
        curve(**({"methods": ["random"], "ratios": [0.5]} | asked | changes))


def test_a_function_is_a_method_of_a_curve(asked, tmp_path):
    def alternating(model, calibration, ratio):
        assert len(calibration) == HOW["samples"]
        heads = sorted(hc.layout(model), key=lambda head: head.index % 2)
        return hc.Mask(hc.layout(model), frozenset(heads[: hc.layout(model).kept_at(ratio)]))

    found = curve(methods=["random", alternating], ratios=[0.5], out=tmp_path, **asked)
    rows = {row["method"]: row for row in found.summary()}
    assert rows["alternating"]["against_random"]["seeds"] == 2
    own = [point for point in found.points if point.method == "alternating"]
    assert [point.pattern for point in own] == ["222", "222"]
    again = curve(methods=["random", alternating], ratios=[0.5], out=tmp_path, **asked)
    assert again.points == found.points
    records = [hc.load_record(path) for path in (tmp_path / "runs").iterdir()]
    notes = [note for record in records for note in record.notes]
    assert sum("cannot be repeated from the record alone" in note for note in notes) == 2


def test_a_model_in_memory_stays_in_this_process(asked, tmp_path):
    options = hc.ExecutorOptions(executor="processes")
    with pytest.raises(UsageError, match="cannot reach a model, rows or a method"):
        curve(methods=["random"], ratios=[0.5], out=tmp_path, executor_options=options, **asked)
    found = curve(methods=["random"], ratios=[0.5], out=tmp_path, **asked)
    record = hc.load_record(next((tmp_path / "runs").iterdir()))
    assert isinstance(record.run.model, InMemory)
    assert {path.name for path in (tmp_path / "runs").iterdir()} >= {record.run.key}
    with pytest.raises(UsageError, match="was in the memory of the process"):
        hc.run(record.run)
    assert len(found.points) == 2
