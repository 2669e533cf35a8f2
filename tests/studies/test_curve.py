from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

from headcount.errors import UsageError
from headcount.heads import Layout
from headcount.pruning.cluster import Cluster
from headcount.pruning.methods import Given
from headcount.studies.curve import curve, pruning_chance
from headcount.studies.points import POINTS
from headcount.training.evaluate import evaluate
from headcount.training.options import TrainOptions
from headcount.training.scoring import Scoring

PLAIN = Scoring(draws=0)

HOW = {"seeds": 2, "samples": 16, "draws": 20}


@pytest.fixture
def asked(model, task, tokenizer):
    return {"model": model, "task": task, "tokenizer": tokenizer, **HOW}


def test_points_are_what_evaluate_gives(asked, model, task, tokenizer):
    found = curve(methods=["random", "importance"], ratios=[0.25, 0.75], **asked)
    assert len(found.points) == 8
    assert found.full.score == evaluate(model, task, tokenizer=tokenizer, scoring=PLAIN).score
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
    assert rows["random", 0.25]["relative"] == pytest.approx(sum(own) / 2 / found.full.score)


def test_finished_points_are_reused_and_a_curve_can_grow(asked, tmp_path, monkeypatch):
    first = curve(methods=["random"], ratios=[0.5], out=tmp_path, **asked)
    lines = (tmp_path / POINTS).read_text().splitlines()
    assert len(lines) == 3
    # a kill in the middle of a line
    (tmp_path / POINTS).write_text("\n".join(lines[:2]) + "\n" + lines[2][:-9])
    from headcount.studies.trial import Trial

    scored: list[int] = []
    plain = Trial.score_decisions

    def counting(self, masks, seeds):
        scored.append(len(masks))
        return plain(self, masks, seeds)

    monkeypatch.setattr(Trial, "score_decisions", counting)
    monkeypatch.setattr(Trial, "score_full", lambda self: pytest.fail("scored again"))
    again = curve(methods=["random"], ratios=[0.5], out=tmp_path, **asked)
    assert again.points == first.points
    assert scored == [1]
    grown = curve(methods=["random"], ratios=[0.5, 0.9], out=tmp_path, **asked)
    assert scored == [1, 2]
    assert grown.points[:2] == first.points


def test_another_question_in_the_same_folder_is_refused(asked, tmp_path):
    curve(methods=["random"], ratios=[0.5], out=tmp_path, **asked)
    with pytest.raises(UsageError, match="recover was False, now True"):
        curve(methods=["random"], ratios=[0.5], out=tmp_path, recover=True, **asked)
    curve(methods=["random"], ratios=[0.5], out=tmp_path, recover=True, overwrite=True, **asked)


def test_repairs(asked):
    train = TrainOptions(steps=1, batch_size=4)
    plain = curve(methods=["random"], ratios=[0.75], **asked)
    solved = curve(methods=["random"], ratios=[0.75], recover=True, finetune=train, **asked)
    assert [p.pattern for p in plain.points] == [p.pattern for p in solved.points]
    assert plain.full == solved.full
    assert plain.points != solved.points


def test_each_heads_chance_of_going(asked, tmp_path):
    found = curve(methods=["cluster"], ratios=[0.5], **asked)
    assert sum(found.chance[0.5].values) == pytest.approx(6)
    assert json.dumps(found.to_json())
    found.save_parquet(tmp_path / "c.parquet")
    table = pq.read_table(tmp_path / "c.parquet")
    assert table.num_rows == 3
    assert table.column("relative")[0].as_py() == 1.0
    far = {"encoder": [[0, 0.1, 0.9], [0.1, 0, 0.9], [0.9, 0.9, 0]]}
    layout = Layout.of(encoder=[3])
    chance = pruning_chance(Cluster(redundancy=far).prepare(layout, Given()), 1 / 3, layout)
    assert chance.values[2] == 0
    assert chance.values[0] + chance.values[1] == pytest.approx(1)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"methods": []}, "at least one method"),
        ({"ratios": [1.5]}, "between 0 and 1"),
        ({"seeds": 0}, "at least one seed"),
        ({"methods": ["pattern"]}, "has no curve"),
        ({"methods": ["randm"]}, "Did you mean 'random'"),
        ({"methods": ["random", "random"]}, "twice"),
    ],
)
def test_refusals(asked, changes, said):
    with pytest.raises(UsageError, match=said):
        curve(**({"methods": ["random"], "ratios": [0.5]} | asked | changes))
