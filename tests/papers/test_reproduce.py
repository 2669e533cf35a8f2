from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

import headcount as hc
from headcount.base.errors import HeadcountError, UsageError
from headcount.base.files import write_json
from headcount.papers.items import read_items
from headcount.papers.reproduce import (
    open_folder,
    plan_items,
    plan_summary,
    scale_of,
    select_items,
)
from headcount.papers.scales import ENVIRONMENT, DataPaths
from headcount.studies.study import Study
from papers.filled import filled

PACKED = Path(__file__).parents[2] / "docs" / "reproduction" / "pocket-records.tar.xz"
"""The records of real runs that docs/reproduction.md is made from."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in which the runs of weak-link's table 4 are done."""
    filled(tmp_path, "tuned", "random")
    plan = plan_items(select_items("weak-link", "table-4"), "pocket")
    study = Study(plan, tmp_path)
    write_json(study._file, study._now)
    return tmp_path


def test_an_item_is_drawn_beside_the_papers_numbers_and_its_claims_judged(folder: Path):
    (result,) = hc.reproduce("weak-link", "Table 4", out=folder, run=False)
    assert (result.done, result.total) == (36, 36)
    half = next(row for row in result.sheets[0].rows if row[0] == "50 %")
    assert str(half[1]).startswith("0.710 [")
    assert [number.value for number in half[-4:]] == [83.02, 90.9, 90.04, 92.0]
    assert [verdict.claim.code for verdict in result.verdicts] == ["WL4"]
    assert result.verdicts[0].word == "does not hold"
    names = {path.name for path in result.files}
    assert names == {f"weak-link-table-4{end}" for end in (".md", ".csv", ".json")}
    data = json.loads((folder / "items" / "weak-link-table-4.json").read_text())
    assert data["command"] == "headcount reproduce weak-link table-4"
    assert "83.69" in (folder / "items" / "weak-link-table-4.md").read_text()


def test_without_its_runs_an_item_is_not_drawn(folder: Path):
    (result,) = hc.reproduce("weak-link", "table-6", out=folder, run=False)
    assert result.drawn is None
    assert (result.done, result.total) == (6, 42)
    assert result.verdicts[0].word == "not run"


def test_claims_are_judged_from_the_runs_that_are_there(folder: Path):
    verdicts = {verdict.claim.code: verdict for verdict in hc.claims(folder)}
    assert len(verdicts) == 36
    assert verdicts["WL4"].word == "does not hold"
    assert verdicts["AA1"].word == "not run"


def test_every_item_is_drawn_from_the_records_beside_the_page(tmp_path: Path):
    with tarfile.open(PACKED) as archive:
        archive.extractall(tmp_path, filter="data")
    scale, finished = open_folder(tmp_path / "pocket")
    assert scale == "pocket"
    for item in read_items().values():
        assert finished.is_whole(*item.groups), f"{item.paper} {item.name}: records of other runs"
        drawn = item.draw(finished)
        assert drawn.sheets or drawn.notes, f"{item.paper} {item.name}"


def test_claims_without_the_weights_that_name_their_runs_say_so(tmp_path, monkeypatch, caplog):
    for name in ENVIRONMENT.values():
        monkeypatch.delenv(name, raising=False)
    for scale in ("small", "pocket"):
        (tmp_path / scale / "studies").mkdir(parents=True)
        (tmp_path / scale / "studies" / f"{scale}.json").touch()
    open_folder(tmp_path / "small", DataPaths(data=tmp_path))
    assert "without --weights most count as not run" in caplog.text
    caplog.clear()
    open_folder(tmp_path / "small", DataPaths(data=tmp_path, weights=tmp_path))
    open_folder(tmp_path / "pocket")
    assert not caplog.text


def test_a_plan_counts_without_running(tmp_path: Path):
    summary = plan_summary("weak-link", "table-4", out=tmp_path)
    assert (summary.runs, summary.done) == (36, 0)
    assert plan_summary("lay-off", "frozen", scale="paper", out=tmp_path).runs > 10


def test_the_papers_scale_needs_a_gpu_or_a_cluster(tmp_path: Path):
    with pytest.raises(HeadcountError, match="no GPU here"):
        hc.reproduce("lay-off", "frozen", scale="paper", out=tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"paper": None, "item": "table-4"}, "name both"),
        ({"paper": "layoff", "item": None}, "Did you mean 'lay-off'"),
        ({"paper": "lay-off", "item": None, "scale": "poket"}, "Did you mean 'pocket'"),
    ],
)
def test_wrong_names_are_refused(arguments: dict, message: str, tmp_path: Path):
    with pytest.raises(UsageError, match=message):
        hc.reproduce(**arguments, out=tmp_path)


def test_a_folder_of_something_else_has_no_scale(tmp_path: Path):
    with pytest.raises(UsageError, match="names no scale"):
        scale_of(tmp_path)


def test_a_paper_is_another_study_than_all_of_them_and_than_an_item():
    selections = [(None, None), ("lay-off", None), ("lay-off", "frozen"), ("weak-link", None)]
    names = [plan_items(select_items(*which), "pocket").name for which in selections]
    assert names == ["pocket", "pocket-lay-off", "pocket-lay-off-frozen", "pocket-weak-link"]
