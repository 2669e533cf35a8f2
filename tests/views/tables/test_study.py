from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from headcount.studies.gather import StudyTable
from headcount.studies.study import PlanSummary, Status
from headcount.views.tables.study import plan_table, status_line, status_table, summary_table

RUN = {"key": "k", "group": "cut", "axes": {"method": "random", "seed": 1}}
COUNTS = {"done": 3, "running": 1, "stale": 0, "failed": 1, "not run": 0, "planned": 4}


def test_a_plan_says_how_many_runs_and_how_long(shown: Callable[[Any], str]) -> None:
    how: Any = {"name": "x", "folder": Path("f"), "runs": 9, "cells": 9, "groups": {"cut": 8}}
    known = shown(plan_table(PlanSummary(**how, done=2, hours=1.5, judged_by=2, unjudged=3)))
    assert "runs of 'cut'" in known
    assert "1 h 30 min, one at a time, estimated from 2 finished runs; without 3 runs" in known
    said = shown(plan_table(PlanSummary(**how, done=0, hours=2.0, judged_by=0, unjudged=0)))
    assert "2 h 0 min, one at a time, estimated from its file" in said
    few = shown(plan_table(PlanSummary(**how, done=2, hours=0.002, judged_by=2, unjudged=0)))
    assert "7 s, one at a time" in few
    assert "not known" in shown(
        plan_table(PlanSummary(**how, done=0, hours=None, judged_by=0, unjudged=9))
    )


def test_a_status_names_what_failed_and_who_runs_what(shown: Callable[[Any], str]) -> None:
    found = Status(
        name="x", folder=Path("f"), counts=COUNTS, failed=[{**RUN, "error": "no room"}],
        running=[{**RUN, "state": "running", "holder": "process 7 on here"}],
    )  # fmt: skip
    assert status_line(found) == "3 done, 1 running, 1 failed, 4 planned"
    text = shown(status_table(found))
    assert "failed cut: method random, seed 1" in text
    assert "no room" in text
    assert "process 7 on here" in text
    assert "stale" not in text


def test_a_summary_has_means_with_their_intervals(shown: Callable[[Any], str]) -> None:
    line = {"group": "cut", "runs": 2, "score": 0.5, "score.low": 0.4, "score.high": 0.6, "n": 9}
    found = StudyTable(name="x", rows=[], summary=[line, {"group": "other", "runs": 1}])
    text = shown(summary_table(found))
    assert "0.5000 [0.4000, 0.6000]" in text
    assert "score.low" not in text
    assert "nothing is done yet" in shown(summary_table(StudyTable(name="x", rows=[], summary=[])))
