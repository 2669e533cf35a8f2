from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest

from papers.filled import filled
from papers.planted import Planted, prune
from papers.pocket_study import PocketStudy, cut


def test_runs_are_found_by_their_axes(tmp_path: Path):
    finished = filled(tmp_path, "random")
    runs = finished.runs("random", ratio=0.5, task="pocket-entailment")
    assert [run.seed for run in runs] == [0, 1, 2]
    assert {run.task for run in runs} == {"pocket-entailment"}
    scores = finished.scores("random", "task", "ratio")["pocket-entailment", 0.5]
    assert scores == {0: 0.7, 1: 0.71, 2: 0.72}
    assert runs[0].sparsity == 0.5
    assert runs[0].metric == "accuracy"
    assert runs[0].rows == 100


def test_a_group_is_whole_when_all_its_runs_are_done(tmp_path: Path):
    finished = filled(tmp_path, "tuned")
    assert finished.is_whole("tuned")
    assert not finished.is_whole("tuned", "random")  # no part of this plan
    shutil.rmtree(finished.runs("tuned")[0].folder)
    again = type(finished)(finished.plan, finished.folder)
    assert not again.is_whole("tuned")
    assert again.count(["tuned"]) == (5, 6)
    assert len(again.runs("tuned")) == 5


def test_a_run_without_a_score_has_none(tmp_path: Path):
    one = filled(tmp_path, "near-random").runs("near-random")[0]
    assert math.isnan(one.score)
    assert one.redundancy().count == 10


def test_heads_left_by_layer() -> None:
    finished = Planted()
    finished.add("a", {}, prune(0.5, kept={"encoder": [8, 0], "decoder": [3]}))
    assert finished.runs("a")[0].heads_left == {"encoder": [(8, 8), (0, 8)], "decoder": [(3, 8)]}


def test_relative_scores_turn_with_the_metric(tmp_path: Path) -> None:
    study = PocketStudy(tmp_path, "words")
    study.fill("words", lambda _: cut(4.0, 2.0, metric="perplexity"))
    assert {run.relative_score for run in study.finished.runs("words")} == {0.5}
    study.fill("words", lambda _: cut(0.6, 0.8, metric="recall@1"))
    assert study.finished.runs("words")[0].relative_score == pytest.approx(0.75)
    study.fill("words", lambda _: cut(math.nan, 0.8) | {"scores": {
        "before": {"metric": "spearman", "score": 0.8, "n": 5},
        "after": {"metric": "spearman", "score": None, "n": 5}}})  # fmt: skip
    assert study.finished.runs("words")[0].relative_score == 0.0


def test_the_first_group_that_the_scale_has_is_meant(tmp_path: Path) -> None:
    finished = PocketStudy(tmp_path, "tuned", "frozen").finished
    assert finished.first_group("frozen-full", "tuned") == "tuned"
    assert finished.first_group("frozen", "tuned") == "frozen"
    assert finished.first_group("frozen-full", "words") == "words"


def test_a_score_that_is_undefined_is_no_number() -> None:
    finished = Planted()
    finished.add("gates", {}, prune(0.5, before=0.7))
    finished.add("gates", {}, prune(0.5, before=None))  # type: ignore[arg-type]
    first, second = finished.runs("gates")
    assert first.score_before == 0.7
    assert math.isnan(second.score_before)
