"""Studies with a summary are shown as they are; runs without one are summed up."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from headcount.statistics import compare_groups, interval
from headcount.views.page.pruned import PrunedVariant, pruned_models
from headcount.views.page.reading import Interval
from headcount.views.page.rows import UsedRows
from headcount.views.page.studies import seed_test, studies, sum_up
from headcount.views.page.subjects import PageSubject, subjects
from headcount.views.page.walk import ReportInput, walk
from page.made import study
from views.page.conftest import LAYOUT


def test_a_curve_is_its_summary(subject: PageSubject, report: ReportInput, files: Path) -> None:
    curve = next(
        s for s in studies(subject, report, pruned_models(subject, report)) if s.name == "curve"
    )
    summary = json.loads((files / "curve" / "curve.json").read_text())["summary"]
    points = [(s.name, p.kept, p.score.value) for s in curve.series for p in s.points]
    assert points == [(row["method"], row["kept"], row["mean"]) for row in summary]
    tests = [p.against_random for s in curve.series if s.name == "surgeon" for p in s.points]
    assert {test.p for test in tests} == {0.02}
    assert curve.command == "headcount curve model"


def test_a_study_that_was_stopped_is_summed_up_from_its_runs(tmp_path: Path) -> None:
    from scipy.stats import t

    study(tmp_path, LAYOUT, seeds=3)
    (tmp_path / "curve" / "curve.json").unlink()
    report = walk([tmp_path])
    (subject,) = subjects(report)
    made = pruned_models(subject, report)
    curve = next(s for s in studies(subject, report, made) if s.name == "curve")
    point = next(s for s in curve.series if s.name == "random").points[0]
    same = ("curve", "random", point.kept)
    own = [run for run in made if (run.study, run.method, run.kept) == same]
    values = [run.score.value for run in own]
    mean, error = np.mean(values), np.std(values, ddof=1) / np.sqrt(3)
    low, high = t.interval(0.95, 2, mean, error)
    assert (point.score.value, point.score.low, point.score.high) == pytest.approx(
        (mean, low, high)
    )


def test_models_of_a_search_are_differences_on_their_rows(
    subject: PageSubject, report: ReportInput
) -> None:
    made = pruned_models(subject, report)
    search = next(s for s in studies(subject, report, made) if s.name == "search")
    assert search.relative is True
    own = {run.kept: run.difference for run in made if run.study == "search"}
    for point in search.series[0].points:
        assert point.score == own[point.kept]


def test_a_study_file_is_summed_up_and_tested(study_file: Path) -> None:
    report = walk([study_file])
    (subject,) = subjects(report)
    made = pruned_models(subject, report)
    (study,) = studies(subject, report, made)
    assert study.name == "methods"
    assert study.command == "headcount study run methods.yaml"
    points = {series.name: series.points[0] for series in study.series}
    values = [run.score.value for run in made if run.method == "random, samples 256"]
    mean, low, high = interval(values)
    point = points["random, samples 256"]
    assert (point.score.value, point.score.low, point.score.high) == pytest.approx(
        (mean, low, high)
    )
    assert points["surgeon"].against_random is None  # no random heads with its options


def made(method: str, seed: int, value: float, kept: int = 6) -> PrunedVariant:
    rows = UsedRows.of("dev:selection:0.5:1", 9)
    return PrunedVariant(
        method=method, seed=seed, kept=kept, score=Interval(value, value - 0.1, value + 0.1),
        metric="accuracy", rows=rows, full=Interval(0.9), difference=Interval(value - 0.9),
        mask="", pattern="",
    )  # fmt: skip


RUNS = [
    *(made("random, recovered", seed, 0.5 + seed / 100) for seed in range(4)),
    *(made("surgeon, recovered", seed, 0.8 + seed / 90) for seed in range(4)),
    *(made("all-heads, recovered", seed, 0.9, kept=12) for seed in range(4)),
]


def test_methods_are_tested_against_random_heads_of_the_same_repair() -> None:
    study = sum_up("s", RUNS, 12)
    points = {series.name: series.points[0] for series in study.series}
    groups = {
        name: {run.seed: run.score.value for run in RUNS if run.method == name} for name in points
    }
    rows = compare_groups(
        {name: groups[name] for name in ("surgeon, recovered", "random, recovered")},
        "random, recovered", higher_is_better=True, step=1 / 9,
    )  # fmt: skip
    test = points["surgeon, recovered"].against_random
    assert test is not None
    assert test == seed_test(rows["surgeon, recovered"])
    assert test.verdict == "better"
    assert points["random, recovered"].against_full.verdict == "worse"
    assert (study.rows, study.full) == ("9 rows of dev (selection set)", Interval(0.9))


def test_runs_of_a_search_are_not_tested() -> None:
    study = sum_up("s", RUNS, 12, search=True)
    assert all(not point.against_random for each in study.series for point in each.points)


def test_of_several_sets_of_rows_the_differences_are_shown() -> None:
    easier = replace(
        made("surgeon, recovered", 0, 0.85, kept=9), full=Interval(0.95),
        rows=UsedRows.of("dev:selection:0.5:1", 4), difference=Interval(-0.1, -0.2, 0.0),
    )  # fmt: skip
    study = sum_up("s", [*RUNS, easier], 12)
    assert study.relative is True
    assert study.full == Interval(0.9)  # that of most rows
    assert study.rows == "4 to 9 rows of dev (selection set)"
    points = {
        (series.name, point.kept): point.score.value
        for series in study.series
        for point in series.points
    }
    assert points["all-heads, recovered", 12] == pytest.approx(0.0)
    assert points["surgeon, recovered", 9] == pytest.approx(-0.1)
    same = sum_up("s", RUNS, 12)
    assert same.relative is False
    assert same.series[0].points[0].score.value == pytest.approx(0.9)
