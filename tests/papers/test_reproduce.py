from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

import headcount as hc
from headcount.base.errors import HeadcountError, UsageError
from headcount.base.files import write_json
from headcount.papers.items import read_items
from headcount.papers.reproduce import chosen, find_runs, plan_items, planned, scale_of
from headcount.studies.study import Study
from papers.filled import filled

PACKED = Path(__file__).parents[2] / "docs" / "reproduction" / "pocket-records.tar.xz"
"""The records of real runs that docs/reproduction.md is made from."""


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """A folder in which the runs of weak-link's table 4 are done."""
    filled(tmp_path, "tuned", "random")
    plan = plan_items(chosen("weak-link", "table-4"), "pocket")
    study = Study(plan, tmp_path)
    write_json(study._file, study._now)
    return tmp_path


def test_an_item_is_drawn_beside_the_papers_numbers_and_its_claims_judged(there: Path):
    (made,) = hc.reproduce("weak-link", "Table 4", out=there, run=False)
    assert (made.done, made.total) == (36, 36)
    half = next(row for row in made.sheets[0].rows if row[0] == "50 %")
    assert str(half[1]).startswith("0.710 [")
    assert [number.value for number in half[-4:]] == [83.02, 90.9, 90.04, 92.0]
    assert [each.claim.code for each in made.verdicts] == ["WL4"]
    assert made.verdicts[0].word == "does not hold"
    names = {path.name for path in made.files}
    assert names == {f"weak-link-table-4{end}" for end in (".md", ".csv", ".json")}
    data = json.loads((there / "items" / "weak-link-table-4.json").read_text())
    assert data["command"] == "headcount reproduce weak-link table-4"
    assert "83.69" in (there / "items" / "weak-link-table-4.md").read_text()


def test_without_its_runs_an_item_is_not_drawn(there: Path):
    (made,) = hc.reproduce("weak-link", "table-6", out=there, run=False)
    assert made.drawn is None
    assert (made.done, made.total) == (6, 42)
    assert made.verdicts[0].word == "not run"


def test_claims_are_judged_from_the_runs_that_are_there(there: Path):
    found = {each.claim.code: each for each in hc.claims(there)}
    assert len(found) == 36
    assert found["WL4"].word == "does not hold"
    assert found["AA1"].word == "not run"


def test_every_item_is_drawn_from_the_records_beside_the_page(tmp_path: Path):
    with tarfile.open(PACKED) as archive:
        archive.extractall(tmp_path, filter="data")
    scale, found = find_runs(tmp_path / "pocket")
    assert scale == "pocket"
    for item in read_items().values():
        assert found.is_whole(item.groups), f"{item.paper} {item.name}: records of other runs"
        drawn = item.draw(found)
        assert drawn.sheets or drawn.notes, f"{item.paper} {item.name}"


def test_a_plan_counts_without_running(tmp_path: Path):
    found = planned("weak-link", "table-4", out=tmp_path)
    assert (found.runs, found.done) == (36, 0)
    assert planned("lay-off", "frozen", scale="paper", out=tmp_path).runs > 10


def test_the_papers_scale_needs_a_gpu_or_a_cluster(tmp_path: Path):
    with pytest.raises(HeadcountError, match="no GPU here"):
        hc.reproduce("lay-off", "frozen", scale="paper", out=tmp_path)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"paper": None, "item": "table-4"}, "name both"),
        ({"paper": "layoff", "item": None}, "Did you mean 'lay-off'"),
        ({"paper": "lay-off", "item": None, "scale": "poket"}, "Did you mean 'pocket'"),
    ],
)
def test_wrong_names_are_refused(asked: dict, said: str, tmp_path: Path):
    with pytest.raises(UsageError, match=said):
        hc.reproduce(**asked, out=tmp_path)


def test_a_folder_of_something_else_has_no_scale(tmp_path: Path):
    with pytest.raises(UsageError, match="names no scale"):
        scale_of(tmp_path)


def test_a_paper_is_another_study_than_all_of_them_and_than_an_item():
    asked = [(None, None), ("lay-off", None), ("lay-off", "frozen"), ("weak-link", None)]
    names = [plan_items(chosen(*which), "pocket").name for which in asked]
    assert names == ["pocket", "pocket-lay-off", "pocket-lay-off-frozen", "pocket-weak-link"]
