"""Runs without a summary: means, intervals and tests are the library's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from headcount.statistics import compare_groups, interval
from headcount.views.page.cuts import cuts
from headcount.views.page.loose import sum_up, tested
from headcount.views.page.studies import studies
from headcount.views.page.subjects import subjects
from headcount.views.page.walk import walk


def test_a_study_file_is_summed_up_and_tested(study_file: Path) -> None:
    found = walk([study_file])
    (subject,) = subjects(found)
    made = cuts(subject, found)
    (study,) = studies(subject, found, made)
    assert (study["name"], study["kind"]) == ("methods", "study")
    assert study["command"] == "headcount study run methods.yaml"
    points = {series["name"]: series["points"][0] for series in study["series"]}
    values = [cut["score"]["value"] for cut in made if cut["method"] == "random, samples 256"]
    mean, low, high = interval(values)
    point = points["random, samples 256"]
    assert (point["value"], point["low"], point["high"]) == pytest.approx((mean, low, high))
    assert points["surgeon"]["random"] is None  # no random cuts with its options


def made_cut(method: str, seed: int, value: float, kept: int = 6) -> dict:
    bounds = {"value": value, "low": value - 0.1, "high": value + 0.1}
    return {
        "method": method, "seed": seed, "kept": kept, "score": bounds, "metric": "accuracy",
        "split": "dev:chosen:0.5:1", "before": {"value": 0.9}, "n": 9,
        "difference": {"value": value - 0.9, "low": None, "high": None},
    }  # fmt: skip


CUTS = [
    *(made_cut("random, recovered", seed, 0.5 + seed / 100) for seed in range(4)),
    *(made_cut("surgeon, recovered", seed, 0.8 + seed / 90) for seed in range(4)),
    *(made_cut("all-heads, recovered", seed, 0.9, kept=12) for seed in range(4)),
]


def test_methods_are_held_against_random_cuts_of_the_same_repair() -> None:
    study = sum_up("s", CUTS, 12, kind="study", command=None)
    points = {series["name"]: series["points"][0] for series in study["series"]}
    groups = {
        name: {cut["seed"]: cut["score"]["value"] for cut in CUTS if cut["method"] == name}
        for name in points
    }
    rows = compare_groups(
        {name: groups[name] for name in ("surgeon, recovered", "random, recovered")},
        "random, recovered", higher_is_better=True, step=1 / 9,
    )  # fmt: skip
    test = points["surgeon, recovered"]["random"]
    assert test == tested(rows["surgeon, recovered"])
    assert test["verdict"] == "better"
    assert points["random, recovered"]["all"]["verdict"] == "worse"
    assert (study["rows"], study["full"]) == ("9 rows of dev (selection set)", {"value": 0.9})


def test_runs_of_a_search_are_not_tested() -> None:
    study = sum_up("s", CUTS, 12, kind="search", command="headcount search")
    assert all(not point["random"] for each in study["series"] for point in each["points"])


def test_of_several_sets_of_rows_the_differences_are_shown() -> None:
    lost = {"value": -0.1, "low": -0.2, "high": 0.0}
    easier = made_cut("surgeon, recovered", 0, 0.85, kept=9) | {"n": 4, "before": {"value": 0.95}}
    study = sum_up("s", [*CUTS, easier | {"difference": lost}], 12, kind="stopped",
                   command=None)  # fmt: skip
    assert study["relative"] is True
    assert study["full"] == {"value": 0.9}  # that of most rows
    assert study["rows"] == "4 to 9 rows of dev (selection set)"
    points = {
        (series["name"], point["kept"]): point["value"]
        for series in study["series"]
        for point in series["points"]
    }
    assert points["all-heads, recovered", 12] == pytest.approx(0.0)
    assert points["surgeon, recovered", 9] == pytest.approx(-0.1)
    alike = sum_up("s", CUTS, 12, kind="stopped", command=None)
    assert alike["relative"] is False
    assert alike["series"][0]["points"][0]["value"] == pytest.approx(0.9)
