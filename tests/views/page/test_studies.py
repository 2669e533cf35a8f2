"""Studies with a summary are shown as they are; runs without one are summed up."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from headcount.views.page.cuts import cuts
from headcount.views.page.studies import studies
from headcount.views.page.subjects import PageSubject, subjects
from headcount.views.page.walk import ReportInput, walk
from page.made import study
from views.page.conftest import LAYOUT


def test_a_curve_is_its_summary(subject: PageSubject, found: ReportInput, files: Path) -> None:
    curve = next(s for s in studies(subject, found, cuts(subject, found)) if s["name"] == "curve")
    told = json.loads((files / "curve" / "curve.json").read_text())["summary"]
    points = [(s["name"], p["kept"], p["value"]) for s in curve["series"] for p in s["points"]]
    assert points == [(row["method"], row["kept"], row["mean"]) for row in told]
    tests = [p["random"] for s in curve["series"] if s["name"] == "surgeon" for p in s["points"]]
    assert {test["p"] for test in tests} == {0.02}
    assert curve["command"] == "headcount curve model"


def test_a_study_that_was_stopped_is_summed_up_from_its_runs(tmp_path: Path) -> None:
    from scipy.stats import t

    study(tmp_path, LAYOUT, seeds=3)
    (tmp_path / "curve" / "curve.json").unlink()
    found = walk([tmp_path])
    (subject,) = subjects(found)
    made = cuts(subject, found)
    curve = next(s for s in studies(subject, found, made) if s["name"] == "curve")
    point = next(s for s in curve["series"] if s["name"] == "random")["points"][0]
    same = ("curve", "random", point["kept"])
    own = [cut for cut in made if (cut["study"], cut["method"], cut["kept"]) == same]
    values = [cut["score"]["value"] for cut in own]
    mean, error = np.mean(values), np.std(values, ddof=1) / np.sqrt(3)
    low, high = t.interval(0.95, 2, mean, error)
    assert (point["value"], point["low"], point["high"]) == pytest.approx((mean, low, high))


def test_cuts_of_a_search_are_differences_on_their_own_rows(
    subject: PageSubject, found: ReportInput
) -> None:
    made = cuts(subject, found)
    search = next(s for s in studies(subject, found, made) if s["name"] == "search")
    assert search["relative"] is True
    own = {c["kept"]: c["difference"] for c in made if c["study"] == "search"}
    for point in search["series"][0]["points"]:
        assert {k: point[k] for k in ("value", "low", "high")} == own[point["kept"]]
