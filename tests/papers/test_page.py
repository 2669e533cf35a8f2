from __future__ import annotations

import re
from pathlib import Path

import pytest

from headcount.base.errors import NotFoundError
from headcount.base.files import write_json
from headcount.papers.items import read_items
from headcount.papers.page import write_page
from headcount.papers.reproduce import plan_items
from headcount.studies.study import Study
from papers.filled import filled


def test_the_page_has_every_claim_and_item_and_the_numbers_of_the_runs(tmp_path: Path):
    folder, path = tmp_path / "runs", tmp_path / "docs" / "reproduction.md"
    filled(folder, "tuned", "random", "frozen")
    study = Study(plan_items(list(read_items().values()), "pocket"), folder)
    write_json(study._file, study._now)
    finished = write_page(path, [folder])
    text = path.read_text(encoding="utf-8")
    for paper, name in read_items():
        assert f"\n### {paper} {name}\n" in text
    rows = re.findall(r"^\| ((?:RA|WL|AA|LO)\d+) \|.*\*\*(.+?)\*\* \|", text, re.MULTILINE)
    assert len(rows) == 36
    assert dict(rows)["WL4"] == "does not hold"
    assert dict(rows)["RA1"] == "not run"
    assert finished.counts == {"not run": 34, "does not hold": 1, "holds": 1}
    assert "| 50 % | 0.710 [" in text
    pictures = re.findall(r"\]\((reproduction/.+?\.svg)\)", text)
    assert len(pictures) == finished.figures
    assert all((path.parent / name).is_file() for name in pictures)


def test_without_runs_there_is_no_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotFoundError, match="no runs to write about"):
        write_page("page.md", [])
