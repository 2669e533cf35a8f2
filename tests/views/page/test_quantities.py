"""Numbers of heads: each with its file's values, in the layout's order."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from headcount.likeness.result import load_redundancy
from headcount.views.page.cuts import cuts
from headcount.views.page.quantities import quantities
from headcount.views.page.subjects import PageSubject
from headcount.views.page.walk import ReportInput, ReportItem


@pytest.fixture
def named(subject: PageSubject, found: ReportInput) -> dict[str, dict]:
    listed = quantities(subject, found, cuts(subject, found))
    assert len({each["key"] for each in listed}) == len(listed)
    return {each["key"]: each for each in listed}


def test_importance_and_its_error(named: dict[str, dict], files: Path) -> None:
    data = json.loads((files / "importance.json").read_text())
    assert named["importance"]["values"] == [*chain(*data["scores"]["encoder"])]
    assert named["importance"]["stderr"] == [*chain(*data["stderr"]["encoder"])]


def test_roles_drift_gates_and_sentences(named: dict[str, dict], files: Path) -> None:
    roles = json.loads((files / "roles.json").read_text())["quantities"]
    assert named["replaceable"]["values"] == roles["replaceable"]["values"]
    assert named["replaceable"]["label"] == "replaceable share"
    assert {"drift", "weight change", "gate", "entropy in a sentence"} <= set(named)


def test_the_nearest_head_by_each_distance(named: dict[str, dict], files: Path) -> None:
    values = load_redundancy(files / "random.npz")["js"].values
    expected = [min(row[at] for at in range(12) if at != place) for place, row in enumerate(values)]
    assert named["nearest js"]["values"] == pytest.approx(expected)
    assert "nearest js (2)" in named  # of the other file


def test_how_often_a_head_stays(
    named: dict[str, dict], subject: PageSubject, found: ReportInput
) -> None:
    own = [c for c in cuts(subject, found) if c["method"] == "surgeon" and 0 < c["kept"] < 12]
    own = [c for c in own if c["id"] != "final"]  # a search's answer is one of its cuts
    rows = [
        [bool(int(c["mask"][at // 4], 16) >> (3 - at % 4) & 1) for at in range(12)] for c in own
    ]
    assert named["kept by surgeon"]["values"] == pytest.approx(np.mean(rows, 0).tolist())
    assert "kept by random" not in named


def test_a_file_of_other_heads_is_left_out(subject: PageSubject, found: ReportInput) -> None:
    (roles,) = subject.of("roles")
    roles.data["quantities"]["next"]["values"].pop()
    quantities(subject, found, [])
    assert any("not a number for each of 12 heads" in why for _, why in found.skipped)


def test_a_role_is_a_kind(named: dict[str, dict], files: Path) -> None:
    names = json.loads((files / "roles.json").read_text())["roles"]
    role = named["role"]
    told = [None if each is None else role["kinds"][int(each)] for each in role["values"]]
    assert told == names


def test_what_two_files_measured_is_told_apart(subject: PageSubject, found: ReportInput) -> None:
    (first,) = subject.of("importance")
    subject.items.append(ReportItem(kind="importance", path=Path("later.json"), data=first.data))
    labels = [q["label"] for q in quantities(subject, found, []) if q["key"][:10] == "importance"]
    assert labels == ["importance · importance", "importance · later"]
