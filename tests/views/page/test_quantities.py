"""Numbers of heads: each with its file's values, in the layout's order."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from headcount.likeness.result import load_redundancy
from headcount.views.page.pruned import pruned_models
from headcount.views.page.quantities import HeadQuantity, quantities
from headcount.views.page.subjects import PageSubject
from headcount.views.page.walk import ReportInput, ReportItem


@pytest.fixture
def named(subject: PageSubject, report: ReportInput) -> dict[str, HeadQuantity]:
    listed = quantities(subject, report, pruned_models(subject, report))
    assert len({each.key for each in listed}) == len(listed)
    return {each.key: each for each in listed}


def test_importance_and_its_error(named: dict[str, HeadQuantity], files: Path) -> None:
    data = json.loads((files / "importance.json").read_text())
    assert named["importance"].values == [*chain(*data["scores"]["encoder"])]
    assert named["importance"].stderr == [*chain(*data["stderr"]["encoder"])]


def test_roles_drift_gates_and_sentences(named: dict[str, HeadQuantity], files: Path) -> None:
    roles = json.loads((files / "roles.json").read_text())["quantities"]
    assert named["replaceable"].values == roles["replaceable"]["values"]
    assert named["replaceable"].label == "replaceable share"
    assert {"drift", "weight change", "gate", "entropy in a sentence"} <= set(named)


def test_the_nearest_head_by_each_distance(named: dict[str, HeadQuantity], files: Path) -> None:
    values = load_redundancy(files / "random.npz")["js"].values
    expected = [min(row[at] for at in range(12) if at != place) for place, row in enumerate(values)]
    assert named["nearest js"].values == pytest.approx(expected)
    assert "nearest js (2)" in named  # of the other file


def test_how_often_a_head_stays(
    named: dict[str, HeadQuantity], subject: PageSubject, report: ReportInput
) -> None:
    own = [c for c in pruned_models(subject, report) if c.method == "surgeon" and 0 < c.kept < 12]
    own = [c for c in own if c.id != "final"]  # what a search selects is one of its models
    rows = [[bool(int(c.mask[at // 4], 16) >> (3 - at % 4) & 1) for at in range(12)] for c in own]
    assert named["kept by surgeon"].values == pytest.approx(np.mean(rows, 0).tolist())
    assert "kept by random" not in named


def test_a_file_of_other_heads_is_left_out(subject: PageSubject, report: ReportInput) -> None:
    (roles,) = subject.of("roles")
    roles.data["quantities"]["next"]["values"].pop()
    quantities(subject, report, [])
    assert any("not a number for each of 12 heads" in why for _, why in report.skipped)


def test_a_role_is_a_kind(named: dict[str, HeadQuantity], files: Path) -> None:
    names = json.loads((files / "roles.json").read_text())["roles"]
    role = named["role"]
    assert role.kinds is not None
    assert [None if at is None else role.kinds[int(at)] for at in role.values] == names


def test_what_two_files_measured_has_two_labels(subject: PageSubject, report: ReportInput) -> None:
    (first,) = subject.of("importance")
    subject.items.append(ReportItem(kind="importance", path=Path("later.json"), data=first.data))
    labels = [q.label for q in quantities(subject, report, []) if q.key[:10] == "importance"]
    assert labels == ["importance · importance", "importance · later"]
