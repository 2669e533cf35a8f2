from __future__ import annotations

import math
import shutil
from pathlib import Path

from papers.filled import filled


def test_runs_are_found_by_their_axes(tmp_path: Path):
    found = filled(tmp_path, "random")
    own = found.runs("random", ratio=0.5, task="pocket-entailment")
    assert [each.seed for each in own] == [0, 1, 2]
    assert {each.at("task") for each in own} == {"pocket-entailment"}
    scores = found.scores("random", "task", "ratio")["pocket-entailment", 0.5]
    assert scores == {0: 0.7, 1: 0.71, 2: 0.72}
    assert own[0].sparsity == 0.5
    assert own[0].metric == "accuracy"
    assert own[0].rows == 100


def test_a_group_is_whole_when_all_its_runs_are_done(tmp_path: Path):
    found = filled(tmp_path, "tuned")
    assert found.is_whole(["tuned"])
    assert not found.is_whole(["tuned", "random"])  # no part of this plan
    shutil.rmtree(found.runs("tuned")[0].folder)
    again = type(found)(found.plan, found.folder)
    assert not again.is_whole(["tuned"])
    assert again.count(["tuned"]) == (5, 6)
    assert len(again.runs("tuned")) == 5


def test_a_run_without_a_score_has_none(tmp_path: Path):
    one = filled(tmp_path, "near-random").runs("near-random")[0]
    assert math.isnan(one.score)
    assert one.redundancy().count == 10
